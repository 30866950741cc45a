"""Random traces: the model against the second one, event by event, and what must hold in any."""

import os
import random

import pytest
from naive import MIB, Full, Naive

TRACES = int(os.environ.get("CACHING_TRACES", "60"))  # for each setting and capacity

# Settings as text, and as the second model has them.
SETTINGS = {
    "default": ("", {}),
    "split40": ("max_split_size_mb:40", {"max_split": 40 * MIB}),
    "split20rounding30": (
        "max_split_size_mb:20,max_non_split_rounding_mb:30",
        {"max_split": 20 * MIB, "rounding": 30 * MIB},
    ),
    "divisions4": (
        "roundup_power2_divisions:4",
        {"divisions": {1 << i: 4 for i in range(16)}},
    ),
    "divisions": (
        "roundup_power2_divisions:[2:8,16:2,>:1]",
        {"divisions": {1: 8, 2: 8, 16: 2} | {1 << i: 1 for i in range(5, 16)}},
    ),
    "large40": ("large_segment_size_mb:40", {"large": 40 * MIB}),
    "expandable": ("expandable_segments:True", {"expandable": True}),
    "expandable12": (
        "expandable_segments:True,large_segment_size_mb:12",
        {"expandable": True, "large": 12 * MIB},
    ),
    "collect": (
        "garbage_collection_threshold:0.6,per_process_memory_fraction:0.9",
        {"gc": 0.6, "fraction": 0.9},
    ),
    "collect+split": (
        "garbage_collection_threshold:0.3,max_split_size_mb:24,per_process_memory_fraction:1.0",
        {"gc": 0.3, "max_split": 24 * MIB, "fraction": 1.0},
    ),
    "fraction+expandable": (
        "per_process_memory_fraction:0.5,expandable_segments:True,max_split_size_mb:20",
        {"fraction": 0.5, "expandable": True, "max_split": 20 * MIB},
    ),
}
SIZES = (
    [1, 511, 512, 513, 1000, 4096, MIB - 1, MIB, MIB + 1, 2 * MIB, 5 * MIB, 9 * MIB],
    [10 * MIB - 1, 10 * MIB, 10 * MIB + 1, 19 * MIB, 20 * MIB, 21 * MIB, 39 * MIB, 40 * MIB],
    [60 * MIB, 61 * MIB + 77, 100 * MIB],
)


def some_size(rng):
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(SIZES[0])
    if kind < 0.6:
        return rng.choice(SIZES[1] + SIZES[2])
    if kind < 0.62:
        return rng.choice([0, 1 << 59, 1 << 60, 1 << 62])
    return int(2 ** rng.uniform(0, 26))


def some_trace(rng, events, streams, loads=False):
    """Events of tests/caching/events.c, about half of the memory of it given back in between."""
    trace, held, name = [], [], 0
    lifo = rng.random() < 0.3
    for _ in range(events):
        kind = rng.random()
        if held and kind < rng.choice([0.3, 0.5, 0.6]):
            index = -1 if lifo else rng.randrange(len(held))
            trace.append(f"f {held.pop(index)}")
        elif kind > 0.985:
            trace.append("e")
        elif kind > 0.975:
            trace.append(f"n {rng.randrange(4)}")
        elif kind > 0.965 and loads:
            trace.append("l")
        else:
            trace.append(f"a {name} {some_size(rng)} {rng.randrange(streams)}")
            held.append(name)
            name += 1
        if rng.random() < 0.2:
            trace.append("d")
    rng.shuffle(held)
    return trace + [f"f {name}" for name in held] + ["d", "e", "d"]


def expected(trace, settings, capacity):
    """The second model's answers."""
    model, held, answers = Naive(capacity, **settings), {}, []
    for event in trace:
        words = event.split()
        if words[0] == "d":
            answers.append(model.dump() or [""])
            continue
        place = []
        if words[0] == "a":
            try:
                held[words[1]] = model.allocate(int(words[2]), int(words[3]))
                place = [-1 if held[words[1]] is None else held[words[1]].address]
            except Full:
                held[words[1]], place = None, [-2]
        elif words[0] == "f":
            model.release(held.pop(words[1]))
        elif words[0] == "n":
            model.refuse = int(words[1])
        elif words[0] == "e":
            model.empty()
        answers.append([str(x) for x in model.figures() + place])
    return answers


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("megabytes", [0, 100, 333])
def test_second_model_agrees(tool, name, megabytes):
    text, settings = SETTINGS[name]
    if not megabytes and "fraction" in settings:
        megabytes = 150
    rng = random.Random(f"{name} {megabytes}")
    for _ in range(TRACES):
        # A list of blocks has neither ages nor where an expandable segment begins.
        loads = not settings.get("gc") and not settings.get("expandable")
        trace = some_trace(rng, rng.choice([10, 40, 40, 120]), rng.choice([1, 1, 3]), loads)
        answers = tool.events(trace, text, megabytes * MIB)
        wanted = expected(trace, settings, megabytes * MIB)
        for i, (answer, want) in enumerate(zip(answers, wanted, strict=True)):
            assert answer == want, (i, trace[: i + 1])


def parse(word):
    """(address, bytes, letters, requested) of a block."""
    address, rest = word.split("+")
    rest, requested = rest.split("@")
    size = rest.rstrip("asx|")
    return int(address), int(size), rest[len(size) :], int(requested)


@pytest.mark.parametrize("name", SETTINGS)
def test_what_always_holds(tool, name):
    """No two blocks overlap; requested <= allocated <= reserved, each the sum over the blocks;
    freed and emptied, nothing is left; the same trace gives the same answers."""
    text, settings = SETTINGS[name]
    rng = random.Random(name)
    for _ in range(max(TRACES // 4, 1)):
        trace = some_trace(rng, 200, 3)
        trace = [line for event in trace for line in ([event] if event == "d" else [event, "d"])]
        capacity = 200 * MIB if "fraction" in settings else rng.choice([0, 150 * MIB])
        answers = tool.events(trace, text, capacity)
        assert answers == tool.events(trace, text, capacity)
        figures = ["0"] * 6
        for event, answer in zip(trace, answers, strict=True):
            if event != "d":
                figures = answer
                continue
            blocks = [parse(word) for word in answer if word]
            for (address, size, _, _), (next_address, *_) in zip(blocks, blocks[1:]):
                assert address + size <= next_address
            held = [block for block in blocks if "a" in block[2]]
            requested, allocated, reserved = map(int, figures[:3])
            assert requested <= allocated <= reserved
            assert requested == sum(block[3] for block in held)
            assert allocated == sum(block[1] for block in held)
            assert reserved == sum(block[1] for block in blocks)
            assert not capacity or reserved <= capacity
        assert answers[-1] == [""] and figures[:4] == ["0"] * 4


def test_settings_change_while_running(tool):
    """Expandable segments switched on and off in one life of the allocator, as torch's tests do."""
    choices = [
        ("", {}),
        ("expandable_segments:True", {"expandable": True}),
        ("max_split_size_mb:40", {"max_split": 40 * MIB}),
        (
            "expandable_segments:True,max_split_size_mb:40",
            {"expandable": True, "max_split": 40 * MIB},
        ),
    ]
    rng = random.Random(5)
    for _ in range(TRACES * 2):
        trace, model, held, wanted = [], Naive(250 * MIB), {}, []
        for name in range(80):
            kind = rng.random()
            if kind < 0.15:
                text, settings = rng.choice(choices)
                trace.append(f"s {text}")
                model.settle(**settings)
            elif kind < 0.5 and held:
                gone = rng.choice(sorted(held))
                trace.append(f"f {gone}")
                model.release(held.pop(gone))
            else:
                size = some_size(rng)
                trace.append(f"a {name} {size} 0")
                try:
                    held[name] = model.allocate(size)
                except Full:
                    pass
            wanted.append([str(x) for x in model.figures()])
            trace.append("d")
            wanted.append(model.dump() or [""])
        answers = tool.events(trace, "", 250 * MIB)
        for i, (answer, want) in enumerate(zip(answers, wanted, strict=True)):
            assert (answer if trace[i] == "d" else answer[:6]) == want, (i, trace[: i + 1])
