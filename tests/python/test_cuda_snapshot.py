"""Snapshots of CUDA memory: pickles and JSON reduced to what is needed, and nothing else is run."""

import json
import pickle
import sys

import pytest
from peakproof import __main__, cuda

BLOCK = {"address": 4096, "size": 512, "requested_size": 500, "state": "active_allocated"}
FREE = {"address": 4608, "size": 2096640, "requested_size": 0, "state": "inactive", "frames": []}
SNAPSHOT = {
    "segments": [
        {
            "device": 0,
            "address": 4096,
            "total_size": 2097152,
            "allocated_size": 512,
            "active_size": 512,
            "requested_size": 500,
            "stream": 0,
            "segment_type": "small",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [{"name": "f", "filename": "f.py", "line": 3}],
            "blocks": [dict(BLOCK, frames=[{"name": "g"}]), FREE],
        }
    ],
    "device_traces": [
        [
            {"action": "segment_alloc", "addr": 4096, "size": 2097152, "stream": 0, "time_us": 1},
            {"action": "alloc", "addr": 4096, "size": 500, "stream": 0, "frames": []},
            {"action": "oom", "size": 7, "stream": 0, "device_free": 3},
        ],
        [],
    ],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:40", "x": {"1": 0}},
}


def convert(tmp_path, data, monkeypatch, code=0):
    source, target = tmp_path / "in", tmp_path / "out.json"
    source.write_bytes(data)
    monkeypatch.setattr(sys, "argv", ["peakproof", "cuda-snapshot", str(source), "-o", str(target)])
    assert __main__.main() == code
    return json.loads(target.read_text()) if target.exists() else None


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_and_json_give_the_same(tmp_path, protocol, monkeypatch):
    out = convert(tmp_path, pickle.dumps(SNAPSHOT, protocol), monkeypatch)
    assert out == convert(tmp_path, json.dumps(SNAPSHOT).encode(), monkeypatch)
    assert out["segments"][0]["blocks"][0] == BLOCK
    assert "frames" not in json.dumps(out) and "time_us" not in json.dumps(out)
    assert [e["action"] for e in out["device_traces"][0]] == ["segment_alloc", "alloc", "oom"]
    assert out["allocator_settings"] == {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:40"}
    # What was reduced reduces to itself.
    assert convert(tmp_path, json.dumps(out).encode(), monkeypatch) == out


def test_a_list_of_segments_is_a_snapshot(tmp_path, monkeypatch):
    """torch.cuda.memory_snapshot() returns only that."""
    out = convert(tmp_path, pickle.dumps(SNAPSHOT["segments"]), monkeypatch)
    assert len(out["segments"]) == 1 and out["device_traces"] == []


class Evil:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (self.marker, "w")


def test_nothing_in_a_pickle_is_run(tmp_path, monkeypatch, capsys):
    marker = tmp_path / "marker"
    data = pickle.dumps(dict(SNAPSHOT, segments=[Evil(str(marker))]))
    assert convert(tmp_path, data, monkeypatch, 65) is None
    assert not marker.exists()
    assert "which no snapshot needs" in capsys.readouterr().err


BAD = [
    (b"", "not JSON"),
    (b"{", "not JSON"),
    (b"[" * 100000, "not JSON"),
    (b"\x80\x04", "not a pickle"),
    (pickle.dumps(3), "snapshot.segments is no list"),
    (pickle.dumps({"segments": 3}), "snapshot.segments is no list"),
    (pickle.dumps({"segments": [3]}), "segments[0] is no dictionary"),
    (pickle.dumps({"segments": [{"address": -1}]}), "segments[0].address is no whole number"),
    (pickle.dumps({"segments": [{"address": True}]}), "segments[0].address is no whole number"),
    (pickle.dumps({"segments": [{"address": 1 << 63}]}), "segments[0].address is no whole number"),
    (pickle.dumps({"segments": [{}]}), "segments[0].blocks is no list"),
    (
        pickle.dumps({"segments": [{"blocks": [{"size": 1.5}]}]}),
        "segments[0].blocks[0].size is no whole number",
    ),
    (pickle.dumps({"segments": [], "device_traces": [3]}), "device_traces[0] is no list"),
    (
        pickle.dumps({"segments": [], "device_traces": [[{"addr": "x"}]]}),
        "device_traces[0][0].addr is no whole number",
    ),
]


@pytest.mark.parametrize(("data", "message"), BAD, ids=lambda x: x if isinstance(x, str) else "")
def test_what_is_wrong_is_said_with_its_place(tmp_path, data, message, monkeypatch, capsys):
    assert convert(tmp_path, data, monkeypatch, 65) is None
    assert message in capsys.readouterr().err


def test_places_that_cannot_be_read_or_written(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["peakproof", "cuda-snapshot", "/nowhere", "-o", "x"])
    assert __main__.main() == 66
    (tmp_path / "in").write_bytes(json.dumps(SNAPSHOT).encode())
    monkeypatch.setattr(
        sys, "argv", ["peakproof", "cuda-snapshot", str(tmp_path / "in"), "-o", "/nowhere/x"]
    )
    assert __main__.main() == 73


def test_numbers_are_whole():
    with pytest.raises(ValueError, match="no pair"):
        cuda.reduce([{"segment_pool_id": 3, "blocks": []}])
