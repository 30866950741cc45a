# Ctrl-C: the best so far is written, the report says so, exit code 130.
$PYTHON $DATA/../cli/limits/endless.py >p.json
$PYTHON - <<END
import signal, subprocess, time
process = subprocess.Popen(
    ["peakproof", "plan", "p.json", "-o", "out.json", "--certificate", "proof", "--state-limit", "1000000000"],
    stdout=subprocess.PIPE)
time.sleep(0.7)
process.send_signal(signal.SIGINT)
text = process.communicate(timeout=60)[0].decode()
print(process.returncode, "cut the search short" in text)
END
ls . proof
peakproof verify -q p.json out.json proof
echo "exit $?"
