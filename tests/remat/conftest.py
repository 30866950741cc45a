"""What the tests of `peakproof remat` share."""

import json
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "onnx"), str(TESTS / "tflite")]
import harness  # noqa: E402
from harness import pytest_addoption  # noqa: E402, F401


class Tools(harness.Tools):
    """The programs under test."""

    def said(self, *arguments, code=0):
        """Standard output (str) of `peakproof ...`, which must exit with `code`."""
        return self.run(self.peakproof, *arguments, code=code).stdout

    def remat(self, path, *more, code=0):
        """`peakproof remat --json`; returns the JSON's object."""
        return json.loads(self.said("remat", "--json", path, *more, code=code))

    def check_proofs(self, folder):
        """Every certificate in a folder must be accepted, and say that its order is optimal."""
        certificates = sorted(folder.glob("*.cert"))
        assert certificates
        for certificate in certificates:
            done = self.run(self.check, certificate.with_suffix(".json"), certificate, code=0)
            assert done.stdout.startswith("s VERIFIED") and done.stdout.rstrip().endswith("optimal")

    def execute(self, *arguments):
        """What a runtime script says of a model: digests of its outputs, or why it was refused."""
        done = self.run(sys.executable, *arguments, code=0, timeout=900)
        return json.loads(done.stdout.splitlines()[-1])

    def litert(self, path):
        return self.execute(TESTS / "tflite/runtime.py", "litert", path)

    def onnxruntime(self, path):
        return self.execute(TESTS / "onnx/runtime.py", path)


@pytest.fixture(scope="session")
def tools(request):
    return Tools(request.config.getoption("--build"))
