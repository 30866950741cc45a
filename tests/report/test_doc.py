"""The examples of doc/reports.md are what the command prints."""

import os
import subprocess

from conftest import ROOT, environment


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
