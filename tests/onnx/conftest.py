"""What the tests of ONNX files share: the tools under test, and the models."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "python")]


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build/test"), help="build directory")


def models():
    """The models: shipped ones, and those of the corpus where it is; by name, no doubles."""
    folders = [ROOT / "tests/data/onnx"]
    if "PEAKPROOF_SHARED" in os.environ:
        folders.append(Path(os.environ["PEAKPROOF_SHARED"]) / "models/onnx")
    found = {path.name: path for folder in folders for path in sorted(folder.glob("*.onnx"))}
    return [found[name] for name in sorted(found)]


def pytest_generate_tests(metafunc):
    if "model" in metafunc.fixturenames:
        metafunc.parametrize("model", models(), ids=lambda path: path.stem)


def optima(model):
    """The row of a model in OPTIMA.tsv: (statements, original peak, optimum)."""
    for folder in (model.parent, model.parent.parent):
        if (folder / "OPTIMA.tsv").exists():
            with open(folder / "OPTIMA.tsv") as file:
                for row in csv.DictReader(file, delimiter="\t"):
                    if row["file"] == model.name:
                        fields = ("operators", "original_peak", "optimum")
                        return tuple(int(row[field]) for field in fields)
    raise AssertionError(f"no optimum for {model}")


class Tools:
    """The programs under test."""

    def __init__(self, build, folder):
        build = Path(build).resolve()
        self.peakproof = build / "src/peakproof"
        self.check = build / "check/peakproof-check"
        self.permute_tool = build / "tests/onnx/onnx-permute"
        self.torture = build / "tests/onnx/onnx-torture"
        self.folder = folder

    def run(self, *arguments):
        """Runs a command; returns the finished process. Sanitizer reports become exit code 99."""
        environment = dict(os.environ, ASAN_OPTIONS="exitcode=99", UBSAN_OPTIONS="halt_on_error=1")
        environment["PYTHONPATH"] = str(ROOT / "python")
        return subprocess.run(
            [str(a) for a in arguments], capture_output=True, text=True, env=environment
        )

    def shapes(self, path, output, *more):
        """`python -m peakproof onnx-shapes`; returns the finished process."""
        command = [sys.executable, "-m", "peakproof", "onnx-shapes", path, "-o", output, *more]
        return self.run(*command)

    def shaped(self, path):
        """The model with inferred shapes, all free dimensions 1; made once."""
        output = self.folder / path.name
        if not output.exists():
            done = self.shapes(path, output, "--dim", "*=1")
            assert done.returncode == 0, done.stderr
        return output

    def plan(self, path, *more):
        """`peakproof plan --json` of a model; returns the JSON's object."""
        done = self.run(self.peakproof, "plan", "--json", path, *more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def permute(self, path, seed, output):
        """Writes the model in a legal order drawn with seed; returns {program: its entry}."""
        done = self.run(self.permute_tool, path, seed, output)
        assert done.returncode == 0, done.stderr
        return {entry["subgraph"]: entry for entry in json.loads(done.stdout)}

    def programs(self, path, folder, *more):
        """`peakproof convert`: the model's programs as dicts, by name."""
        done = self.run(self.peakproof, "convert", path, "-o", f"{folder}/programs/", *more)
        assert done.returncode == 0, done.stderr
        files = sorted((folder / "programs").glob("*.json"))
        return {file.stem: json.loads(file.read_text()) for file in files}

    def save(self, model, path):
        """Writes a ModelProto (or bytes)."""
        path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        return path


@pytest.fixture(scope="session")
def tools(request, tmp_path_factory):
    return Tools(request.config.getoption("--build"), tmp_path_factory.mktemp("shaped"))


def nodes_of(path):
    """The nodes of a model's graph."""
    return list(onnx.load(path, load_external_data=False).graph.node)
