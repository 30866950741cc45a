"""A sample of hostile files (`torture` does all of them): spoiled and cut ones go through reading,
building, simulating, writing, reading again and comparing, in a build with sanitizers if that is
what --build names."""

import made
import pytest

FILES = 400


def test_spoiled(tools, model):
    path = tools.shaped(model)
    count = FILES if path.stat().st_size < 1_000_000 else FILES // 8
    done = tools.run(tools.torture, path, "--sample", count, 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{count} files, ")


@pytest.mark.parametrize("name", ["diamond", "random", "branches", "loop"])
def test_spoiled_made(tools, tmp_path, name):
    """All of a small file: every byte, every length."""
    path = tools.save(getattr(made, name)(), tmp_path / "m.onnx")
    done = tools.run(tools.torture, path)
    assert done.returncode == 0, done.stderr
