"""What tflite-micro, where it is installed, says of a model, and the scratch that it asks for."""

import json
import subprocess
import sys
from pathlib import Path

# Bytes that the reference kernels ask for, by operator: RFFT (its length in int16), SVDF (filters
# and units in int32), LSTM (four gates of its state in int16). All other models ask for none.
SCRATCH = {
    "tflm_audio_preproc_int8": {3: [1024]},
    "tflm_keyword_scrambled_8bit": {i: [256, 256] for i in (1, 3, 5, 7)}
    | {i: [128, 128] for i in (9, 10, 11)},
    "tflm_mnist_lstm_int8": {0: [40] * 4},
    "coral_keras_lstm": {1: [40] * 4},
}


def run(path, runs):
    """What tflm_run.py says of a model: a dict, or the reason (str) why TFLM does not run it."""
    tool = Path(__file__).resolve().parent / "tflm_run.py"
    done = subprocess.run(
        [sys.executable, tool, path, "7", str(runs)], capture_output=True, text=True
    )
    return done.stderr if done.returncode else json.loads(done.stdout)


def write_scratch(model, path):
    """Writes the table of the model's scratch for `peakproof arena --scratch`; returns its path."""
    scratch = SCRATCH.get(model.stem, {}).items()
    lines = ["operator,bytes", *(f"{i},{bytes}" for i, sizes in scratch for bytes in sizes)]
    path.write_text("\n".join(lines) + "\n")
    return path
