"""What the tests of ONNX files share: the tools under test, and the models."""

import csv
import json
import sys
from pathlib import Path

import onnx
import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from harness import ModelTools, parametrize_model, pytest_addoption  # noqa: E402, F401


def pytest_generate_tests(metafunc):
    parametrize_model(metafunc, "onnx")


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


class Tools(ModelTools):
    """The programs under test."""

    def __init__(self, build, folder):
        super().__init__(build, "onnx")
        self.folder = folder

    def shaped(self, path):
        """The model with inferred shapes, all free dimensions 1; made once."""
        output = self.folder / path.name
        if not output.exists():
            done = self.shapes(path, output, "--dim", "*=1")
            assert done.returncode == 0, done.stderr
        return output

    def programs(self, path, folder, *more):
        """`peakproof convert`: the model's programs as dicts, by name."""
        self.run(self.peakproof, "convert", path, "-o", f"{folder}/programs/", *more, code=0)
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
