"""What the tests of .tflite files share: the tools under test, and the models."""

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


def models():
    """The models: shipped ones, and those of the corpus where it is; by name, no doubles."""
    folders = [ROOT / "tests/data/tflite"]
    if "PEAKPROOF_SHARED" in os.environ:
        folders.append(Path(os.environ["PEAKPROOF_SHARED"]) / "models/tflite")
    found = {path.name: path for folder in folders for path in sorted(folder.glob("*.tflite"))}
    return [found[name] for name in sorted(found)]


def pytest_generate_tests(metafunc):
    if "model" in metafunc.fixturenames:
        metafunc.parametrize("model", models(), ids=lambda path: path.stem)


class Tools:
    """The programs under test."""

    def __init__(self, build):
        build = Path(build).resolve()
        self.peakproof = build / "src/peakproof"
        self.permute_tool = build / "tests/tflite/tflite-permute"
        self.torture = build / "tests/tflite/tflite-torture"

    def run(self, *arguments):
        """Runs a command; returns the finished process. Sanitizer reports become exit code 99."""
        environment = dict(os.environ, ASAN_OPTIONS="exitcode=99", UBSAN_OPTIONS="halt_on_error=1")
        return subprocess.run(
            [str(a) for a in arguments], capture_output=True, text=True, env=environment
        )

    def plan(self, path, *more):
        """`peakproof plan --json` of a model; returns the JSON's object."""
        done = self.run(self.peakproof, "plan", "--json", path, *more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def permute(self, path, seed, output):
        """Writes the model in a legal order drawn with seed; returns {subgraph: order}."""
        done = self.run(self.permute_tool, path, seed, output)
        assert done.returncode == 0, done.stderr
        return {entry["subgraph"]: entry for entry in json.loads(done.stdout)}


@pytest.fixture(scope="session")
def tools(request):
    return Tools(request.config.getoption("--build"))
