"""minimalloc's CSV in and out: its challenging instances, and bad files."""

import csv
import os
import random
from pathlib import Path

import pytest
from conftest import load, shared, used

INSTANCES = shared("arena/*.csv")
CAPACITY = 1048576  # bytes
EXACT = "ABCEFGHIK"  # instances whose smallest arena is their load


def read(path):
    """The rows of a written CSV as buffers: first, last, bytes, offset."""
    with open(path, newline="") as file:
        return [
            (int(row["lower"]), int(row["upper"]) - 1, int(row["size"]), int(row["offset"]))
            for row in csv.DictReader(file)
        ]


@pytest.mark.skipif(not INSTANCES, reason="PEAKPROOF_SHARED is not set")
@pytest.mark.parametrize("path", INSTANCES, ids=lambda path: path.stem)
def test_packs_within_the_capacity(tool, tmp_path, path):
    out = tmp_path / "out.csv"
    report = tool.report(path, "--budget", CAPACITY, "-o", out)
    assert used(read(out)) == report["arena"] <= CAPACITY
    with open(path) as before, open(out) as after:
        for old, new in zip(before, after, strict=True):
            assert new.rpartition(",")[0] == old.rstrip("\n")


@pytest.mark.skipif(not INSTANCES, reason="PEAKPROOF_SHARED is not set")
@pytest.mark.parametrize("name", EXACT)
def test_meets_the_load(tool, tmp_path, name):
    path = Path(os.environ["PEAKPROOF_SHARED"]) / f"arena/{name}.1048576.csv"
    out = tmp_path / "out.csv"
    report = tool.report(path, "-o", out)
    arena = report["arenas"][0]
    assert arena["minimal"] and arena["proof"] == "load"
    assert used(read(out)) == load(read(out)) == arena["arena"] == arena["lower_bound"]


def write(path, text):
    path.write_text(text)
    return path


def test_columns_in_any_order_and_others_kept(tool, tmp_path):
    path = write(
        tmp_path / "in.csv", "size,what,upper,offset,lower,id\r\n4,x,9,77,0,a\r\n3,,9,5,8,b\r\n"
    )
    out = tmp_path / "out.csv"
    tool.arena(path, "-o", out)
    assert out.read_text() == "size,what,upper,lower,id,offset\n4,x,9,0,a,0\n3,,9,8,b,4\n"


def test_old_names_and_inclusive_ends(tool, tmp_path):
    path = write(tmp_path / "in.csv", "buffer_id,start,end,size\na,0,4,3\nb,4,5,2\nc,5,9,3\n")
    report = tool.report(path)
    assert report["arena"] == 5
    assert [b["last"] for b in report["arenas"][0]["buffers"]] == [4, 5, 9]


def test_alignment_column(tool, tmp_path):
    path = write(tmp_path / "in.csv", "id,lower,upper,size,alignment\na,0,4,3,8\nb,3,5,2,8\n")
    assert tool.report(path)["arena"] == 10
    assert tool.report(path, "--runtime", "1")["arena"] == 5


BAD = {
    "no-size": ("id,lower,upper\na,0,1\n", "neither"),
    "twice": ("id,lower,upper,size,size\na,0,1,2,2\n", ":1:21:"),
    "short": ("id,lower,upper,size\na,0,1\n", ":2:6: fewer fields"),
    "long": ("id,lower,upper,size\na,0,1,2,3\n", ":2:9: more fields"),
    "letters": ("id,lower,upper,size\na,0,1,2x\n", ":2:7: no integer"),
    "empty": ("id,lower,upper,size\na,,1,2\n", ":2:3: no integer"),
    "minus": ("id,lower,upper,size\na,-,1,2\n", ":2:3: no integer"),
    "huge": ("id,lower,upper,size\na,0,1,9223372036854775808\n", ":2:7: no integer"),
    "negative": ("id,lower,upper,size\na,0,1,-2\n", ":2:1: negative size"),
    "backwards": ("id,lower,upper,size\na,5,5,2\n", ":2:1: upper must be above lower"),
    "gaps": ("id,lower,upper,size,gaps\na,0,5,2,1-2\n", ":2:9: gaps"),
    "alignments": ("id,lower,upper,size,alignment\na,0,5,2,4\nb,0,5,2,8\n", ":3:1: all buffers"),
    "alignment-0": ("id,lower,upper,size,alignment\na,0,5,2,0\n", ":2:1: the alignment"),
    "zero": ("id,lower,upper,size\na,0,5,2\n\0", "zero byte"),
    "overflow": ("id,lower,upper,size\na,0,5,9223372036854775807\nb,0,5,1\n", "2^63-1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_file(tool, tmp_path, name):
    text, message = BAD[name]
    out = tmp_path / "out.csv"
    done = tool.arena(write(tmp_path / "in.csv", text), "-o", out, code=65)
    assert message in done.stderr
    assert not out.exists()


def test_nothing(tool, tmp_path):
    path = write(tmp_path / "in.csv", "id,lower,upper,size\n")
    assert tool.report(path)["arena"] == 0


def test_budget(tool, tmp_path):
    path = write(tmp_path / "in.csv", "id,lower,upper,size\na,0,4,3\nb,3,5,2\n")
    assert tool.report(path, "--budget", "5")["budget"]["fits"]
    assert not tool.report(path, "--budget", "4", code=1)["budget"]["fits"]


def test_budget_too_small(tool, tmp_path):
    """What does not fit is packed as well as without a budget."""
    pick = random.Random(7)
    rows = [(pick.randrange(40), pick.randint(1, 12), pick.randint(1, 99)) for _ in range(60)]
    text = "".join(f"{i},{at},{at + time},{size}\n" for i, (at, time, size) in enumerate(rows))
    path = write(tmp_path / "in.csv", "id,lower,upper,size\n" + text)
    smallest = tool.report(path)["arena"]
    assert tool.report(path, "--budget", str(smallest - 1), code=1)["arena"] == smallest
