"""peakproof.plan: programs as dicts, without torch."""

import json
import os
import subprocess
import sys

import peakproof
import pytest


def program(**changes):
    """Two branches of different growth into a sum: the order matters."""
    p = {
        "peakproof": 1,
        "name": "two branches",
        "statements": [
            {"name": "wide_a", "reads": [0], "writes": [1]},
            {"name": "wide_b", "reads": [0], "writes": [2]},
            {"name": "thin_a", "reads": [1], "writes": [3]},
            {"name": "thin_b", "reads": [2], "writes": [4]},
            {"name": "sum", "work": [8, 8], "reads": [3, 4], "writes": [5], "overwrites": [5]},
        ],
        "storages": [
            {"name": "x", "bytes": 100, "live_in": True},
            {"name": "a", "bytes": 1000},
            {"name": "b", "bytes": 1000},
            {"name": "ta", "bytes": 10},
            {"name": "tb", "bytes": 10},
            {"name": "y", "bytes": 50, "live_out": True},
        ],
    }
    p.update(changes)
    return p


def test_plan():
    plan = peakproof.plan(program())
    assert (plan["peak_before"], plan["peak_after"], plan["lower_bound"]) == (2100, 1110, 1110)
    one = plan["programs"][0]
    assert plan["optimal"] and sorted(one["order"]) == list(range(5))
    assert one["statements"] == 5 and one["storages"] == 6 and one["proof"] != "none"
    assert one["certificate"].startswith("p peakproof 1\n") and one["certificate"].endswith("q\n")
    assert json.loads(one["program_json"])["name"] == "two branches"


def test_checker_accepts(tmp_path):
    checker = os.path.join(os.environ.get("PP_BUILD", ""), "release/check/peakproof-check")
    if not os.path.exists(checker):
        pytest.skip("peakproof-check is not built")
    one = peakproof.plan(program())["programs"][0]
    (tmp_path / "p.json").write_text(one["program_json"])
    (tmp_path / "p.cert").write_text(one["certificate"])
    out = subprocess.run(
        [checker, tmp_path / "p.json", tmp_path / "p.cert"], capture_output=True, text=True
    )
    assert out.returncode == 0 and out.stdout == "s VERIFIED peak 1110 bound 1110 optimal\n"


def test_empty_program():
    plan = peakproof.plan({"peakproof": 1, "statements": [], "storages": []})
    assert plan["peak_after"] == 0 and plan["optimal"]


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"peakproof": 2}, "version 1"),
        ({"statements": None}, "statements is not a list"),
        ({"statements": [{"reads": [9]}]}, r"statements\[0\].reads\[0\] names a storage"),
        ({"statements": [{"reads": ["0"]}]}, r"statements\[0\].reads\[0\] is not an integer"),
        ({"statements": [{"reads": [[0, 1]]}]}, "storage, from, to"),
        ({"statements": [{"work": -1}]}, r"statements\[0\].work is not between"),
        ({"statements": [{"work": 2**63}]}, r"statements\[0\].work is not between"),
        ({"statements": [{"overwrites": [1]}]}, "not in writes"),
        ({"statements": [{"pure": 1}]}, "pure is not a bool"),
        ({"storages": [{"name": "x"}]}, r"storages\[0\] has no bytes"),
        ({"storages": [{"bytes": True}]}, "not an integer"),
        ({"order": [[1, 1]]}, "before < after"),
        ({"order": [[0, 9]]}, "before < after"),
    ],
)
def test_wrong_programs(changes, says):
    with pytest.raises(ValueError, match=says):
        peakproof.plan(program(**changes))


def test_overflow():
    big = [{"bytes": 2**62, "live_in": True, "live_out": True}] * 3
    with pytest.raises(OverflowError):
        peakproof.plan({"peakproof": 1, "statements": [], "storages": big})


def test_no_torch_needed():
    code = (
        "import sys, peakproof; peakproof.plan({'peakproof': 1, 'statements': [], 'storages': []});"
    )
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
