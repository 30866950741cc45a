"""What the tests of .tflite files share: the tools under test, and the models."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from harness import ModelTools, parametrize_model, pytest_addoption  # noqa: E402, F401


def pytest_generate_tests(metafunc):
    parametrize_model(metafunc, "tflite")


@pytest.fixture(scope="session")
def tools(request):
    return ModelTools(request.config.getoption("--build"), "tflite")
