# On a terminal, after a second; not with --quiet, not on a dumb one, not into a file.
$PYTHON $DATA/../cli/limits/endless.py >p.json
cat >terminal.py <<'END'
import os, pty, sys
pid, terminal = pty.fork()
if not pid:
    os.execvp(sys.argv[1], sys.argv[1:])
output = b""
try:
    while data := os.read(terminal, 4096):
        output += data
except OSError:
    pass  # the other side was closed
print("progress" if b"gap" in output and b"best" in output else "none",
      "colour" if b"\x1b[" in output else "plain", os.waitpid(pid, 0)[1])
END
export TERM=xterm
plan="peakproof plan p.json --time-limit 1.5 --state-limit 1000000000"
$PYTHON terminal.py $plan
NO_COLOR=1 $PYTHON terminal.py $plan
$PYTHON terminal.py $plan --quiet
TERM=dumb $PYTHON terminal.py $plan
$plan 2>&1 >/dev/null | grep -c gap || true
