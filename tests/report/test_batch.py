"""batch: one line a model; a failure stops nothing; killed and resumed, it loses nothing."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import chain
from harness import DATA


def lines(path):
    """The lines (dict) of a JSONL file, by model."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({line["model"] for line in found}) == len(found)
    return {line["model"]: line for line in found}


def folder(tmp_path, models=12):
    """A folder of models, one of them broken, one below."""
    models_at = tmp_path / "models"
    (models_at / "below").mkdir(parents=True)
    for i in range(models):
        chain(models_at / f"m{i:02}.json", 20 + 10 * i)
    (models_at / "broken.json").write_text("{")
    (models_at / "notes.txt").write_text("no model")
    shutil.copy(DATA / "programs/googlenet.infer.0.json", models_at / "below")
    return models_at


def test_all(peakproof, tmp_path):
    models, out = folder(tmp_path), tmp_path / "out.jsonl"
    shown = peakproof("batch", "--jobs", "3", "--jsonl", out, models, code=65).stdout
    assert "14 models: 13 planned now" in shown and "1 failed" in shown
    found = lines(out)
    assert len(found) == 14
    for path, line in found.items():
        if line["code"]:
            assert path.endswith("broken.json") and line["code"] == 65 and line["error"]
            continue
        plan = json.loads(peakproof("plan", "--json", path).stdout)
        for key in ("peak_before", "peak_after", "lower_bound", "optimal"):
            assert line[key] == plan[key]


def test_list(peakproof, tmp_path):
    listed = tmp_path / "list"
    a = chain(tmp_path / "a.json", 5)
    listed.write_text(f"# two\n{a}\n\n{tmp_path}/none.json\n")
    shown = peakproof("batch", listed, code=65).stdout
    assert "2 models: 1 planned now" in shown and "none.json: cannot" in shown


def test_changed(peakproof, tmp_path):
    """A model that has changed is planned again; the others are not."""
    models, out = folder(tmp_path), tmp_path / "out.jsonl"
    peakproof("batch", "--jsonl", out, models, code=65)
    before = out.read_text()
    peakproof("batch", "--jsonl", out, models, code=65)
    assert out.read_text() == before
    chain(models / "m03.json", 33)
    peakproof("batch", "--jsonl", out, models, code=65)
    assert out.read_text().startswith(before)
    added = out.read_text()[len(before) :].splitlines()
    assert [json.loads(line)["model"] for line in added] == [str(models / "m03.json")]


@contextlib.contextmanager
def endless():
    """A model that never ends (a FIFO would be refused): its path, and the descriptor to pass."""
    reading, writing = os.pipe()
    try:
        yield f"/dev/fd/{reading}", reading
    finally:
        os.close(reading)
        os.close(writing)


def wait_for_lines(process, out, count):
    """Waits until a batch that is to go on has written so many whole lines."""
    while not out.exists() or out.read_text().count("\n") < count:
        assert process.poll() is None, "it has ended"
        time.sleep(0.001)


def kill_again_and_again(peakproof, tmp_path, models, out, counts, half):
    """Kills a batch at each of so many lines (`counts`) in `out`; leaves half a line if told.

    Its first model never ends: no machine is so fast that there is nothing left to kill."""
    with endless() as (path, descriptor):
        listed = tmp_path / "killed.list"
        listed.write_text("".join(f"{model}\n" for model in (path, *models)))
        command = [peakproof.path, "batch", "--jobs", "2", "--jsonl", out, listed]
        for i, count in enumerate(counts):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, pass_fds=(descriptor,))
            wait_for_lines(process, out, count)
            time.sleep(0.001 * i)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
            if half:
                with open(out, "a") as file:
                    file.write('{"model": "half')


def test_killed(peakproof, tmp_path):
    """Killed again and again at any time, and with a line half written."""
    models, out = folder(tmp_path, 40), tmp_path / "out.jsonl"
    each = sorted(models.rglob("*.json"))
    out.touch()
    kill_again_and_again(peakproof, tmp_path, each, out, range(0, 40, 5), half=True)
    peakproof("batch", "--jobs", "2", "--jsonl", out, models, code=65)
    assert len(lines(out)) == 42


@pytest.mark.skipif("PEAKPROOF_SHARED" not in os.environ, reason="no corpus here")
def test_killed_corpus(peakproof, tmp_path):
    """The corpus's .tflite files, killed after every few models (`shared` does all of it)."""
    models, out = Path(os.environ["PEAKPROOF_SHARED"]) / "models/tflite", tmp_path / "out.jsonl"
    each = sorted(models.glob("*.tflite"))
    kill_again_and_again(peakproof, tmp_path, each, out, range(8, 48, 8), half=False)
    peakproof("batch", "--jobs", "2", "--jsonl", out, models)
    assert sorted(lines(out)) == list(map(str, each))


def test_child_killed(peakproof, tmp_path):
    """The end of one process is a failed model, not the end of the batch."""
    listed, out = tmp_path / "list", tmp_path / "out.jsonl"
    b, c = (chain(tmp_path / f"{name}.json", 10) for name in "bc")
    with endless() as (path, descriptor):
        listed.write_text(f"{path}\n{b}\n{c}\n")
        process = subprocess.Popen(
            [peakproof.path, "batch", "--jobs", "2", "--jsonl", out, listed],
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(descriptor,),
        )
        wait_for_lines(process, out, 2)
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            (child,) = file.read().split()
        os.kill(int(child), signal.SIGKILL)
        shown = process.communicate(timeout=60)[0]
    assert process.returncode == 65
    assert f"{path}: ended by signal 9" in shown and "2 planned now" in shown


def test_one_at_a_time(peakproof, tmp_path):
    """Two batches do not write to one file."""
    import fcntl

    out = tmp_path / "out.jsonl"
    with open(out, "w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        peakproof("batch", "--jsonl", out, folder(tmp_path), code=73)
