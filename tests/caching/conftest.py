"""What the tests of the caching allocator share: the programs under test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="exitcode=99", UBSAN_OPTIONS="halt_on_error=1")


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build/test"), help="build directory")


class Tool:
    """The programs under test."""

    def __init__(self, build):
        self.build = Path(build).resolve()

    def events(self, events, settings="", capacity=0, preset="", code=0):
        """Runs events (lines of tests/caching/events.c); returns the answers, a list of words
        each."""
        done = subprocess.run(
            [
                str(self.build / "tests/caching/caching-events"),
                preset,
                settings,
                str(capacity),
            ],
            input="".join(f"{event}\n" for event in events),
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
        )
        assert done.returncode == code, (done.returncode, done.stderr)
        return [line.split(" ") for line in done.stdout.splitlines()]

    def cuda(self, *arguments, code=0):
        """Runs `peakproof cuda`; checks the exit code; returns the finished process."""
        done = subprocess.run(
            [str(self.build / "src/peakproof"), "cuda", *map(str, arguments)],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
        )
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    def report(self, *arguments, code=0):
        """`peakproof cuda --json`; returns the JSON's object."""
        return json.loads(self.cuda("--json", "-q", *arguments, code=code).stdout)


@pytest.fixture(scope="session")
def tool(request):
    return Tool(request.config.getoption("--build"))
