"""Snapshots: traces replayed must end in the snapshot's own segments and blocks; what was changed
in them is noticed."""

import copy
import json
import os
import random

import pytest
from naive import MIB, Full, Naive
from test_random import SETTINGS, some_size

SNAPSHOTS = int(os.environ.get("CACHING_TRACES", "60")) // 6
# test_cuda.py test_memory_snapshot, by hand from the rules: 1022568 bytes freed; 508400 bytes at
# the start of the segment; x, 511284 bytes, the second block; two of the thousand tiles.
BASE = 0x7F0000000000


def entry(action, addr, size):
    return {"action": action, "addr": BASE + addr, "size": size, "stream": 0, "time_us": 5}


def block(address, size, requested):
    state = "active_allocated" if requested else "inactive"
    return {
        "address": BASE + address,
        "size": size,
        "requested_size": requested,
        "state": state,
        "frames": [],
    }


HAND = {
    "segments": [
        {
            "device": 0,
            "address": BASE,
            "total_size": 2 * MIB,
            "allocated_size": 1020928,
            "active_size": 1020928,
            "requested_size": 1020708,
            "stream": 0,
            "segment_type": "small",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": [
                block(0, 508416, 508400),
                block(508416, 511488, 511284),
                block(1019904, 512, 512),
                block(1020416, 512, 512),
                block(1020928, 1076224, 0),
            ],
        }
    ],
    "device_traces": [
        [
            entry("segment_alloc", 0, 2 * MIB),
            entry("alloc", 0, 1022568),
            entry("free_requested", 0, 1022568),
            entry("free_completed", 0, 1022568),
            entry("alloc", 0, 508400),
            entry("alloc", 508416, 511284),
            entry("alloc", 1019904, 512),
            entry("alloc", 1020416, 512),
            entry("snapshot", 0, 0),
        ]
    ],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""},
}


def write(path, snapshot):
    path.write_text(json.dumps(snapshot))
    return path


def test_by_hand(tool, tmp_path):
    report = tool.report("--replay", write(tmp_path / "s.json", HAND))
    assert report["same_trace"] and report["same_blocks"] and report["why"] is None
    assert (report["entries"], report["segments"], report["blocks"]) == (7, 1, 5)
    assert (report["requested"], report["allocated"], report["reserved"]) == (
        1020708,
        1020928,
        2 * MIB,
    )
    assert report["allocated_peak"] == 1022976
    text = tool.cuda("--replay", tmp_path / "s.json").stdout
    assert "reproduced: every address, 1 segments, 5 blocks" in text


def grow(rng, model, held, events, empties=True):
    """Random events on the second model, which records them."""
    for _ in range(events):
        kind = rng.random()
        if held and kind < 0.45:
            model.release(held.pop(rng.randrange(len(held))))
        elif kind > 0.97 and empties:
            model.empty()
        elif kind > 0.95 and empties:
            model.refuse = rng.randrange(3)
        else:
            size = min(some_size(rng), 1 << 59)  # above, torch refuses without a word in the trace
            try:
                got = model.allocate(size, rng.randrange(2))
                held += [got] if got else []
            except Full:
                pass
    model.refuse = 0


@pytest.mark.parametrize("name", SETTINGS)
def test_random_traces_are_reproduced(tool, tmp_path, name):
    text, settings = SETTINGS[name]
    rng = random.Random(name)
    for _ in range(SNAPSHOTS):
        capacity = 200 * MIB if "fraction" in settings else rng.choice([0, 150 * MIB])
        # Where nothing depends on it the trace tells when the driver refused.
        needed = capacity and ("fraction" in settings or "expandable" in settings)
        options = ["--capacity", capacity] if needed else []
        model, held = Naive(capacity, **settings), []
        grow(rng, model, held, 150)
        path = write(tmp_path / "s.json", model.snapshot(text))
        if not model.trace:
            continue
        report = tool.report("--replay", *options, path)
        assert report["same_trace"] and report["same_blocks"]
        assert report["reserved"] == model.reserved


@pytest.mark.parametrize("name", ["default", "split40", "divisions4", "expandable", "large40"])
def test_trace_from_a_snapshot_on(tool, tmp_path, name):
    """--history is the state before the first entry of the trace."""
    text, settings = SETTINGS[name]
    rng = random.Random(name)
    for _ in range(SNAPSHOTS):
        model, held = Naive(0, **settings), []
        expandable = "expandable" in settings
        grow(rng, model, held, 80, not expandable)
        before = write(tmp_path / "before.json", model.snapshot(text))
        model.trace.clear()
        grow(rng, model, held, 80, not expandable)
        if not model.trace:
            continue
        after = write(tmp_path / "after.json", model.snapshot(text))
        tool.report("--replay", "--history", before, after)
        if model.figures()[0] and json.loads(before.read_text())["segments"]:
            tool.report("--replay", after, code=1)


def changes():
    """(what, change of HAND, what the report says)"""

    def change(path, value):
        def apply(snapshot):
            at = snapshot
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            return snapshot

        return apply

    blocks = ("segments", 0, "blocks")
    trace = ("device_traces", 0)

    def split_differently(snapshot):
        snapshot["segments"][0]["blocks"][0]["size"] += 512
        snapshot["segments"][0]["blocks"][1]["size"] -= 512
        snapshot["segments"][0]["blocks"][1]["address"] += 512
        return snapshot

    def without(*indices):
        def apply(snapshot):
            for index in reversed(indices):
                del snapshot["device_traces"][0][index]
            return snapshot

        return apply

    return [
        ("requested", change((*blocks, 0, "requested_size"), 508401), "is another one"),
        ("state", change((*blocks, 2, "state"), "inactive"), "is another one"),
        ("type", change(("segments", 0, "segment_type"), "large"), "is another one"),
        ("split", split_differently, "is another one"),
        ("address", change((*trace, 5, "addr"), BASE + 508928), "is not served from"),
        ("size", change((*trace, 5, "size"), 511284 - 512), "is not served from"),
        ("segment", change((*trace, 0, "size"), 4 * MIB), "is not served from"),
        ("unknown", change((*trace, 3, "addr"), BASE + 512), "nothing was allocated at"),
        ("lost-free", without(2, 3), "is not served from"),
        ("lost-alloc", without(7), "is another one"),
        ("lost-segment", without(0), "is not served from"),
        ("emptied", change((*trace, 8), entry("segment_free", 0, 2 * MIB)), "emptying the cache"),
    ]


@pytest.mark.parametrize(("what", "change", "why"), changes(), ids=lambda x: str(x)[:12])
def test_a_change_is_noticed(tool, tmp_path, what, change, why):
    path = write(tmp_path / "s.json", change(copy.deepcopy(HAND)))
    report = tool.report("--replay", path, code=1)
    assert why in report["why"]
    assert why in tool.cuda("--replay", path, code=1).stdout


def with_segment(**keys):
    snapshot = copy.deepcopy(HAND)
    snapshot["segments"][0].update(keys)
    return snapshot


def with_block(index, **keys):
    snapshot = copy.deepcopy(HAND)
    snapshot["segments"][0]["blocks"][index].update(keys)
    return snapshot


BAD = {
    "not-json": ("{", "not JSON"),
    "deep": ("[" * 200, "nested"),
    "list": ([], "an object with segments"),
    "no-segments": ({}, '"segments" is no list'),
    "total": (with_segment(total_size=4 * MIB), "its blocks are not its total_size"),
    "no-blocks": (with_segment(blocks=3), '"blocks" is no list'),
    "negative": (with_segment(address=-1), '"address" is no whole number'),
    "huge": (with_segment(address=1 << 63), '"address" is no whole number'),
    "gap": (with_block(1, address=BASE + 508928), "does not stand behind"),
    "no-size": (with_block(1, size="x"), '"size" is no whole number'),
    "no-state": (with_block(1, state=None), '"state" is no string'),
    "settings": (dict(HAND, allocator_settings={"PYTORCH_CUDA_ALLOC_CONF": "a:b"}), "unknown"),
    "no-trace": (dict(HAND, device_traces=[]), "there is no trace"),
    "traces": (dict(HAND, device_traces=3), '"device_traces" is no list'),
    "entry": (dict(HAND, device_traces=[[{"action": "alloc"}]]), '"addr" is no whole number'),
    "action": (dict(HAND, device_traces=[[{}]]), '"action" is no string'),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_snapshots(tool, tmp_path, name):
    snapshot, message = BAD[name]
    path = tmp_path / "s.json"
    path.write_text(snapshot if isinstance(snapshot, str) else json.dumps(snapshot))
    assert message in tool.cuda("--replay", path, code=65).stderr


BAD_HISTORIES = {
    "free-side-by-side": (with_block(3, state="inactive", requested_size=0), "side by side"),
    "requested": (with_block(0, requested_size=508417), "bytes requested of"),
}


@pytest.mark.parametrize("name", BAD_HISTORIES)
def test_bad_histories(tool, tmp_path, name):
    snapshot, message = BAD_HISTORIES[name]
    history, good = write(tmp_path / "h.json", snapshot), write(tmp_path / "s.json", HAND)
    assert message in tool.cuda("--replay", "--history", history, good, code=65).stderr


def test_private_pools_are_left_out(tool, tmp_path):
    snapshot = copy.deepcopy(HAND)
    private = dict(copy.deepcopy(HAND["segments"][0]), segment_pool_id=(0, 1))
    snapshot["segments"].append(private)
    snapshot["device_traces"][0].insert(
        4, dict(entry("alloc", 512, 99), pool_id=(0, 1), segment_pool_id=(0, 1))
    )
    done = tool.cuda("--replay", write(tmp_path / "s.json", snapshot))
    assert "private pools" in done.stderr


def test_usage(tool, tmp_path):
    path = write(tmp_path / "s.json", HAND)
    tool.cuda("--replay", "--robust", path, code=64)
    tool.cuda("--replay", "--config", "per_process_memory_fraction:0.5", path, code=64)
    tool.cuda("--replay", "--config", "nonsense:1", path, code=64)
    tool.cuda("--replay", "--preset", "torch-1.0", path, code=64)
    tool.cuda("--replay", tmp_path / "nowhere", code=66)
