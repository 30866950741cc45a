# Ctrl-C: the best so far is written, the report says so, exit code 130.
$PYTHON $DATA/../cli/limits/endless.py >p.json
$PYTHON - <<'END'
import os, pty, signal, subprocess
terminal, other = pty.openpty()
process = subprocess.Popen(
    ["peakproof", "plan", "p.json", "-o", "out.json", "--certificate", "proof", "--state-limit", "1000000000"],
    env={**os.environ, "TERM": "xterm"}, stdout=subprocess.PIPE, stderr=other)
os.close(other)
os.read(terminal, 1)  # it shows progress: now it searches, however slow the machine is
process.send_signal(signal.SIGINT)
text = process.communicate(timeout=60)[0].decode()
print(process.returncode, "cut the search short" in text)
END
ls . proof
peakproof verify -q p.json out.json proof
echo "exit $?"
