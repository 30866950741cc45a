"""The examples of doc/reports.md and doc/outputs.md are what the commands print."""

import os
import subprocess
import sys

from conftest import environment
from harness import ROOT


def test_examples(peakproof):
    path = f"{peakproof.path.parent}:{os.environ['PATH']}"
    shown = subprocess.run(
        [ROOT / "tests/report/examples"],
        env=environment(PATH=path, TZ="UTC"),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    page = (ROOT / "doc/reports.md").read_text().splitlines()
    lines = [line.rstrip() for line in shown.splitlines()]
    assert len(lines) > 15
    assert not [line for line in lines if line not in page]


def test_outputs(peakproof):
    """Every format, by a real example."""
    done = subprocess.run(
        [sys.executable, ROOT / "tests/report/outputs", peakproof.path.parent.parent],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
