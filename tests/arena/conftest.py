"""What the tests of arenas share: the program under test, the models, a validator of offsets."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build/test"), help="build directory")


def shared(pattern, shipped=""):
    """Files of the corpus where it is, and shipped ones (a folder of tests/data): no doubles."""
    found = {}
    if shipped:
        found.update((path.name, path) for path in (ROOT / "tests/data" / shipped).glob("*"))
    if "PEAKPROOF_SHARED" in os.environ:
        found.update(
            (path.name, path) for path in Path(os.environ["PEAKPROOF_SHARED"]).glob(pattern)
        )
    return [found[name] for name in sorted(found)]


def models():
    """The .tflite models."""
    return [path for path in shared("models/tflite/*.tflite", "tflite") if path.suffix == ".tflite"]


def pytest_generate_tests(metafunc):
    if "model" in metafunc.fixturenames:
        metafunc.parametrize("model", models(), ids=lambda path: path.stem)


class Tool:
    """The program under test."""

    def __init__(self, build):
        self.peakproof = Path(build).resolve() / "src/peakproof"

    def run(self, *arguments, code=0):
        """Runs `peakproof arena`; checks the exit code; returns the finished process."""
        environment = dict(os.environ, ASAN_OPTIONS="exitcode=99", UBSAN_OPTIONS="halt_on_error=1")
        done = subprocess.run(
            [str(self.peakproof), "arena", *map(str, arguments)],
            capture_output=True,
            text=True,
            env=environment,
        )
        assert done.returncode == code, (done.returncode, done.stderr)
        return done

    def report(self, *arguments, code=0):
        """`peakproof arena --json`; returns the JSON's object."""
        return json.loads(self.run("--json", "-q", *arguments, code=code).stdout)


@pytest.fixture(scope="session")
def tool(request):
    return Tool(request.config.getoption("--build"))


def used(buffers, alignment=1):
    """The bytes that buffers (first, last, bytes, offset: ints, last included) need; asserts that
    offsets are aligned and that no two share a byte while both live."""
    assert all(offset >= 0 and offset % alignment == 0 for _, _, _, offset in buffers)
    buffers = [buffer for buffer in buffers if buffer[2]]
    for i, (first, last, size, offset) in enumerate(buffers):
        for other, (first2, last2, size2, offset2) in enumerate(buffers[:i]):
            apart = first > last2 or first2 > last
            assert apart or offset >= offset2 + size2 or offset2 >= offset + size, (i, other)
    return max((size + offset for _, _, size, offset in buffers), default=0)


def load(buffers):
    """The most bytes of buffers (as above) that live at one time."""
    return max(
        (sum(size for a, b, size, _ in buffers if a <= first <= b) for first, _, _, _ in buffers),
        default=0,
    )
