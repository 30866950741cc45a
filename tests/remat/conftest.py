"""What the tests of `peakproof remat` share."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHARED = os.environ.get("PEAKPROOF_SHARED")
sys.path.insert(0, str(ROOT / "tests/tflite"))
sys.path.insert(0, str(ROOT / "tests/onnx"))


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build/test"), help="build directory")


class Tools:
    """The programs under test."""

    def __init__(self, build):
        self.peakproof = build / "src/peakproof"
        self.checker = build / "check/peakproof-check"

    def run(self, *arguments, code=0):
        """Runs a command that must exit with `code`; returns its standard output (str)."""
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout

    def remat(self, path, *more, code=0):
        """`peakproof remat --json`; returns the JSON's object."""
        return json.loads(self.run(self.peakproof, "remat", "--json", path, *more, code=code))

    def plan(self, path):
        return json.loads(self.run(self.peakproof, "plan", "--json", path))

    def check(self, folder):
        """Every certificate in a folder must be accepted, and say that its order is optimal."""
        certificates = sorted(folder.glob("*.cert"))
        assert certificates
        for certificate in certificates:
            said = self.run(self.checker, certificate.with_suffix(".json"), certificate)
            assert said.startswith("s VERIFIED") and said.rstrip().endswith("optimal")

    def execute(self, *arguments):
        """What a runtime script says of a model: digests of its outputs, or why it was refused."""
        done = subprocess.run(
            [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def litert(self, path):
        return self.execute(ROOT / "tests/tflite/runtime.py", "litert", path)

    def onnxruntime(self, path):
        return self.execute(ROOT / "tests/onnx/runtime.py", path)


@pytest.fixture(scope="session")
def tools(request):
    return Tools(Path(request.config.getoption("--build")).resolve())


def models(folder, kind):
    """Shipped models, and those of the corpus where it is; by name, no doubles."""
    folders = [ROOT / "tests/data" / folder]
    if SHARED:
        folders.append(Path(SHARED) / "models" / folder)
    found = {path.name: path for it in folders for path in sorted(it.glob(f"*.{kind}"))}
    return [found[name] for name in sorted(found)]
