"""Memory snapshots of torch's CUDA caching allocator as JSON.

`python -m peakproof cuda-snapshot IN -o OUT.json` reads what torch.cuda.memory._dump_snapshot
wrote, without running anything that stands in the file, and keeps only what `peakproof cuda` reads
(doc/caching.md). Neither a device nor torch is needed.
"""

import io
import json
import pickle
import sys

from . import files

SEGMENT = ("device", "address", "total_size", "stream", "segment_type", "segment_pool_id")
BLOCK = ("address", "size", "requested_size", "state")
ENTRY = ("action", "addr", "size", "stream", "pool_id", "segment_pool_id")
SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
MOST = (1 << 63) - 1


class _Plain(pickle.Unpickler):
    """Reads numbers, texts and containers of them; a pickle that names anything else is refused."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"it names {module}.{name}, which no snapshot needs")

    def persistent_load(self, _):
        raise pickle.UnpicklingError("it refers to something outside")


def load(data):
    """The snapshot in `data` (bytes): a pickle or JSON. Raises ValueError if it is neither."""
    try:
        if data[:1] in (b"{", b"[") or not data.strip():
            return json.loads(data)
        return _Plain(io.BytesIO(data)).load()
    except (ValueError, RecursionError) as e:  # of JSON
        raise ValueError(f"not JSON: {e}") from None
    except Exception as e:  # a damaged pickle raises anything
        raise ValueError(f"not a pickle of plain data: {e}") from None


def _number(value, where):
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise ValueError(f"{where} is no whole number from 0 to 2^63-1")
    return value


def _pick(source, keys, where):
    """The entries of a dictionary that are wanted; numbers in bytes or addresses."""
    if not isinstance(source, dict):
        raise ValueError(f"{where} is no dictionary")
    out = {}
    for key in keys:
        if key not in source:
            continue
        value, place = source[key], f"{where}.{key}"
        if key.endswith("pool_id"):
            if not isinstance(value, list | tuple):
                raise ValueError(f"{place} is no pair")
            out[key] = [_number(part, place) for part in value]
        elif key in ("segment_type", "state", "action"):
            if not isinstance(value, str):
                raise ValueError(f"{place} is no text")
            out[key] = value
        else:
            out[key] = _number(value, place)
    return out


def _list(source, key, where):
    value = source.get(key) if isinstance(source, dict) else None
    if not isinstance(value, list | tuple):
        raise ValueError(f"{where}.{key} is no list")
    return value


def _segment(source, where):
    out = _pick(source, SEGMENT, where)
    out["is_expandable"] = bool(source.get("is_expandable", False))
    blocks = _list(source, "blocks", where)
    out["blocks"] = [_pick(b, BLOCK, f"{where}.blocks[{i}]") for i, b in enumerate(blocks)]
    return out


def reduce(snapshot):
    """What `peakproof cuda` reads of a snapshot: the same form, without stacks and times.

    `snapshot` is what torch.cuda.memory._snapshot() returns, or a list of segments as
    torch.cuda.memory_snapshot() returns it. Raises ValueError with the place of what is wrong.
    """
    if isinstance(snapshot, list | tuple):
        snapshot = {"segments": snapshot}
    segments = _list(snapshot, "segments", "snapshot")
    out = {"segments": [_segment(s, f"segments[{i}]") for i, s in enumerate(segments)]}
    out["device_traces"] = []
    for device, trace in enumerate(snapshot.get("device_traces") or []):
        where = f"device_traces[{device}]"
        if not isinstance(trace, list | tuple):
            raise ValueError(f"{where} is no list")
        entries = [_pick(e, ENTRY, f"{where}[{i}]") for i, e in enumerate(trace)]
        # Annotations of users have neither; an entry without an action is nothing.
        out["device_traces"].append([e for e in entries if "action" in e])
    settings = snapshot.get("allocator_settings")
    if isinstance(settings, dict):
        settings = {k: settings[k] for k in SETTINGS if isinstance(settings.get(k), str)}
        out["allocator_settings"] = settings
    return out


def write_text(snapshot):
    """A reduced snapshot as JSON text: a segment or a trace entry a line."""

    def lines(items):
        return "[" + ",\n ".join(json.dumps(item) for item in items) + "]"

    traces = ",\n".join(lines(trace) for trace in snapshot["device_traces"])
    settings = json.dumps(snapshot.get("allocator_settings", {}))
    return (
        f'{{"segments": {lines(snapshot["segments"])},\n"device_traces": [{traces}],\n'
        f'"allocator_settings": {settings}}}\n'
    )


# ---- The verb ----


def add_parser(verbs):
    parser = verbs.add_parser(
        "cuda-snapshot", help="write a CUDA memory snapshot as JSON for peakproof cuda"
    )
    parser.add_argument("snapshot", help="a pickle (or JSON) of torch.cuda.memory._snapshot()")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the JSON")
    return parser


def run(options):
    """The verb; returns its exit code (sysexits.h)."""
    try:
        with open(options.snapshot, "rb") as f:
            data = f.read()
    except OSError as e:
        print(f"peakproof: {options.snapshot}: {e.strerror}", file=sys.stderr)
        return 66
    try:
        text = write_text(reduce(load(data)))
    except ValueError as e:
        print(f"peakproof: {options.snapshot}: {e}", file=sys.stderr)
        return 65
    try:
        files.write(options.output, text)
    except OSError as e:
        print(f"peakproof: {options.output}: {e.strerror}", file=sys.stderr)
        return 73
    return 0
