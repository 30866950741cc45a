"""CUDA programs as text: split, modelled and permuted where no device is."""

import glob
import os

import pytest
from peakproof import static
from peakproof.errors import Refusal

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "inductor-cuda")


def captured():
    return sorted(glob.glob(os.path.join(DATA, "*.py.txt")))


def read(name):
    with open(os.path.join(DATA, name + ".py.txt"), encoding="utf-8") as f:
        return f.read()


PLANNED = [os.path.basename(p)[:-7] for p in captured() if "partitions" not in p]


@pytest.mark.parametrize("name", PLANNED)
def test_captured(name):
    """Every captured program is modelled and planned; the realized text splits again."""
    planned = static.plan(read(name), name)
    assert planned.plan["optimal"] and planned.plan["peak_after"] <= planned.model.stock_peak


def test_partitions_are_refused():
    with pytest.raises(Refusal, match="graph partition") as e:
        static.plan(read("partitions_inference"))
    assert e.value.line == 151
