"""What the tests of arenas share: the program under test, the corpus, a validator of offsets."""

import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from harness import SHARED, Tools, parametrize_model, pytest_addoption  # noqa: E402, F401


def shared(pattern):
    """Files of the corpus where it is."""
    return sorted(SHARED.glob(pattern)) if SHARED else []


def pytest_generate_tests(metafunc):
    parametrize_model(metafunc, "tflite")


class Tool(Tools):
    """The program under test."""

    def arena(self, *arguments, code=0):
        """Runs `peakproof arena`; checks the exit code; returns the finished process."""
        return self.run(self.peakproof, "arena", *arguments, code=code)

    def report(self, *arguments, code=0):
        """`peakproof arena --json`; returns the JSON's object."""
        return json.loads(self.arena("--json", "-q", *arguments, code=code).stdout)


@pytest.fixture(scope="session")
def tool(request):
    return Tool(request.config.getoption("--build"))


def buffers(arena):
    """The buffers of a report's arena: first, last, bytes, offset."""
    return [(b["first"], b["last"], b["bytes"], b["offset"]) for b in arena["buffers"]]


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
