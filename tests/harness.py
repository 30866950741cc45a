"""What the pytest suites of the command share: the build under test, how it is run, the models."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data"
# The corpus, or None where it is not.
SHARED = Path(os.environ["PEAKPROOF_SHARED"]) if "PEAKPROOF_SHARED" in os.environ else None


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build/test"), help="build directory")


def models(format):
    """The models of a format ("onnx", "tflite"): shipped ones, and those of the corpus; by name, no
    doubles."""
    folders = [DATA / format]
    if SHARED:
        folders.append(SHARED / "models" / format)
    found = {path.name: path for it in folders for path in it.glob(f"*.{format}")}
    return [found[name] for name in sorted(found)]


def parametrize_model(metafunc, format):
    """A test with an argument `model` runs with each model of the format."""
    if "model" in metafunc.fixturenames:
        metafunc.parametrize("model", models(format), ids=lambda path: path.stem)


class Tools:
    """The programs under test."""

    def __init__(self, build):
        self.build = Path(build).resolve()
        self.peakproof = self.build / "src/peakproof"
        self.check = self.build / "check/peakproof-check"

    def run(self, *arguments, code=None, **options):
        """Runs a command; returns the finished process, its output as str. It must exit with
        `code`, if that is given; sanitizer reports become exit code 99."""
        environment = dict(os.environ, ASAN_OPTIONS="exitcode=99", UBSAN_OPTIONS="halt_on_error=1")
        environment["PYTHONPATH"] = str(ROOT / "python")
        options = {"env": environment, **options}
        done = subprocess.run(
            [str(a) for a in arguments], capture_output=True, text=True, **options
        )
        assert code in (None, done.returncode), (done.returncode, done.stdout, done.stderr)
        return done

    def plan(self, path, *more):
        """`peakproof plan --json` of a model; returns the JSON's object."""
        return json.loads(self.run(self.peakproof, "plan", "--json", path, *more, code=0).stdout)

    def shapes(self, path, output, *more):
        """`python -m peakproof onnx-shapes`; returns the finished process."""
        command = [sys.executable, "-m", "peakproof", "onnx-shapes", path, "-o", output, *more]
        return self.run(*command)


class ModelTools(Tools):
    """The same, and the test tools of a format's folder."""

    def __init__(self, build, format):
        super().__init__(build)
        self.permute_tool = self.build / f"tests/{format}/{format}-permute"
        self.torture = self.build / f"tests/{format}/{format}-torture"

    def permute(self, path, seed, output):
        """Writes the model in a legal order drawn with seed; returns {program: its entry}."""
        done = self.run(self.permute_tool, path, seed, output, code=0)
        return {entry["subgraph"]: entry for entry in json.loads(done.stdout)}
