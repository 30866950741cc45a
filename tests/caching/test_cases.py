"""The allocator's rules, one by one: cases.txt is the table, c10-2.13.0.tsv what torch's own parser
of settings makes of some (written by c10.py)."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def bytes_of(word):
    """ "4M", "512" as an int."""
    return int(word.rstrip("KM")) << {"K": 10, "M": 20}.get(word[-1], 0)


def read_cases():
    cases = []
    for number, line in enumerate((HERE / "cases.txt").read_text().splitlines(), 1):
        if line.startswith("== "):
            name, source = line[3:].split(": ", 1)
            cases.append({"name": name, "lines": [], "settings": "", "capacity": 0})
            assert source, number
        elif line.startswith("settings "):
            cases[-1]["settings"] = line.split()[1]
        elif line.startswith("capacity "):
            cases[-1]["capacity"] = bytes_of(line.split()[1])
        elif line and not line.startswith("#"):
            cases[-1]["lines"].append((number, line))
    return cases


def split(line):
    """An event for the tool, and the words that it must answer."""
    words = line.split()
    if words[0] == "blocks":
        return "d", words[1:]
    if words[0] == "s":
        return line, []
    arguments = {"a": 2, "f": 1, "e": 0, "l": 0, "n": 1}[words[0]] + 1
    if words[0] == "a" and len(words) > 3 and re.match(r"a \d+ \S+ \d+ {2,}", line):
        arguments = 4
    event = [words[0]] + [str(bytes_of(word)) for word in words[1:arguments]]
    return " ".join(event), words[arguments:]


def sizes(answer):
    """What "blocks" says of the answer to d."""
    out = []
    for word in answer:
        size, letters = re.fullmatch(r"\d+\+(\d+)([asx|]*)@\d+", word).groups()
        if "|" in letters and out:
            out.append("|")
        out.append((int(size), "a" in letters))
    return out


@pytest.mark.parametrize("case", read_cases(), ids=lambda case: case["name"].replace(" ", "-"))
def test_case(tool, case):
    events, wanted = zip(*(split(line) for _, line in case["lines"]), strict=True)
    answers = tool.events(events, case["settings"], case["capacity"])
    places = {}
    for (number, _), event, answer, want in zip(
        case["lines"], events, answers, wanted, strict=True
    ):
        where = f"cases.txt:{number}"
        if event == "d":
            want = [w if w == "|" else (bytes_of(w.rstrip("a")), w[-1] == "a") for w in want]
            got = [w for w in sizes(answer) if w != "|" or "|" in want]
            assert got == want, where
            continue
        if not want:
            continue
        assert [int(x) for x in answer[:3]] == [bytes_of(w) for w in want[:3]], where
        if event[0] != "a":
            continue
        address = int(answer[6])
        assert (address == -2) == ("full" in want), where
        for word in want[3:]:
            if word != "full":
                name, offset = word[1:].split("+")
                assert address == places[name] + bytes_of(offset), where
        places[event.split()[1]] = address


def read_settings():
    lines = (HERE / "c10-2.13.0.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("row", read_settings(), ids=lambda row: row[0].strip() or "empty")
def test_settings_as_torch_reads_them(tool, row):
    settings, *values = row
    if values == ["refused"]:
        tool.events([], settings, code=64)
    else:
        assert tool.events(["c"], settings, 1 << 40)[0] == values


@pytest.mark.parametrize(
    "settings",
    [
        "max_split_size_mb",
        "max_split_size_mb:",
        "x",
        ":",
        ",",
        "[",
        "a:1",
        "backend:cudaMallocAsync",
    ]
    + ["roundup_power2_divisions:[64:8", "roundup_power2_divisions:[64]", "max_split_size_mb:1e3"]
    + ["max_split_size_mb:99999999999999999999", "expandable_segments:yes", "a" * 100]
    + ["per_process_memory_fraction:1.5", "garbage_collection_threshold:nan"]
    + ["roundup_power2_divisions:[64:8,", "roundup_power2_divisions:[3:8]", "a:b" * 40],
)
def test_settings_that_are_wrong(tool, settings):
    tool.events([], settings, code=64)


def test_older_release(tool):
    """torch-2.5: ">" overwrites the last interval; the slack of large blocks is fixed."""
    listed = "roundup_power2_divisions:[64:8,1024:4,>:1]"
    new = tool.events(["c"], listed)[0]
    old = tool.events(["c"], listed, preset="torch-2.5")[0]
    assert (new[3 + 10], old[3 + 10]) == ("4", "1")
    trace = [f"a 0 {70 << 20}", "f 0", f"a 1 {41 << 20}"]
    settings = "max_split_size_mb:40,max_non_split_rounding_mb:30"
    assert tool.events(trace, settings)[-1][2] == str(70 << 20)
    assert tool.events(trace, settings, preset="torch-2.5")[-1][2] == str(112 << 20)
