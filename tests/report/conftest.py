"""What the tests of reports share: the command under test, and programs to draw."""

import json
import os
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness import Tools, pytest_addoption  # noqa: E402, F401


@pytest.fixture
def peakproof(request):
    """Runs the built command with arguments; returns the finished process (text)."""
    tools = Tools(request.config.getoption("--build"))

    def run(*arguments, code=0, **more):
        return tools.run(tools.peakproof, *arguments, code=code, timeout=300, **more)

    run.path = tools.peakproof
    return run


def chain(path, statements, name="n"):
    """Writes program JSON of a chain of statements (int) of random sizes, some kept for long."""
    pick = random.Random(1)
    storages = [
        {"name": f"{name}{i}", "bytes": pick.randrange(1, 1 << 20)} for i in range(statements + 1)
    ]
    storages[0]["live_in"] = storages[-1]["live_out"] = True
    body = []
    for i in range(statements):
        reads = {i} | {max(0, i - pick.randrange(1, 40)) for _ in range(i % 3)}
        body.append({"name": f"op{i}", "reads": sorted(reads), "writes": [i + 1]})
    path.write_text(json.dumps({"peakproof": 1, "storages": storages, "statements": body}))
    return path


def environment(**more):
    """The environment with LC_ALL=C and what is given."""
    return dict(os.environ, LC_ALL="C", **more)
