"""What the tests of the caching allocator share: the programs under test."""

import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from harness import Tools, pytest_addoption  # noqa: E402, F401


class Tool(Tools):
    """The programs under test."""

    def events(self, events, settings="", capacity=0, preset="", code=0):
        """Runs events (lines of tests/caching/events.c); returns the answers, a list of words
        each."""
        command = [self.build / "tests/caching/caching-events", preset, settings, capacity]
        lines = "".join(f"{event}\n" for event in events)
        answers = self.run(*command, input=lines, code=code).stdout
        return [line.split(" ") for line in answers.splitlines()]

    def cuda(self, *arguments, code=0):
        """Runs `peakproof cuda`; checks the exit code; returns the finished process."""
        return self.run(self.peakproof, "cuda", *arguments, code=code)

    def report(self, *arguments, code=0):
        """`peakproof cuda --json`; returns the JSON's object."""
        return json.loads(self.cuda("--json", "-q", *arguments, code=code).stdout)


@pytest.fixture(scope="session")
def tool(request):
    return Tool(request.config.getoption("--build"))
