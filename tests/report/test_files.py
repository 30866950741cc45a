"""The picture, the trace and the bars: well formed, and with the numbers of the plan."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import chain, environment
from harness import DATA

MODELS = sorted((DATA / "programs").glob("*.json")) + sorted((DATA / "tflite").glob("*.tflite"))


@pytest.fixture(params=MODELS, ids=lambda path: path.name)
def model(request):
    return request.param


def planned(peakproof, model):
    """The program of highest peak (dict) in the report of plan."""
    report = json.loads(peakproof("plan", "--json", model).stdout)
    return max(report["programs"], key=lambda program: program["peak_after"])


def test_svg(peakproof, model, tmp_path):
    picture = tmp_path / "a.svg"
    peakproof("plan", "-q", "--svg", picture, model)
    root = ElementTree.parse(picture).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    title = root.find("{http://www.w3.org/2000/svg}title").text
    program = planned(peakproof, model)
    assert f"{program['peak_after']} after" in title
    assert f"bound {program['lower_bound']}" in title


def test_trace(peakproof, model, tmp_path):
    """Every event has what its kind wants (Trace Event Format); the counter has the peak."""
    path = tmp_path / "a.json"
    peakproof("plan", "-q", "--trace", path, model)
    trace = json.loads(path.read_text())
    assert set(trace) == {"displayTimeUnit", "traceEvents"}
    tracks, spans, live = {}, {}, []
    for event in trace["traceEvents"]:
        assert event["pid"] == 1 and isinstance(event["tid"], int)
        assert isinstance(event["name"], str) and isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            if event["name"] == "thread_name":
                tracks[event["tid"]] = event["args"]["name"]
            continue
        assert isinstance(event["ts"], int) and event["ts"] >= 0
        if event["ph"] == "X":
            assert isinstance(event["dur"], int) and event["dur"] >= 0
            spans.setdefault(event["tid"], []).append(event)
        else:
            assert event["ph"] == "C"
            live.append(event["args"]["bytes"])
    assert set(spans) <= set(tracks)
    assert all(len(events) == 1 for track, events in spans.items() if track)
    program = planned(peakproof, model)
    assert max(live, default=0) == program["peak_after"]
    assert len(live) == program["statements"]


def test_hostile_names(peakproof, tmp_path):
    """Names with markup and characters that XML does not know do no harm."""
    name = "</script><script>alert(1)</script>&\"'\u0001\uffff]]>\U0001f600"
    model = chain(tmp_path / "<&>.json", 30, name)
    svg, trace, page = (tmp_path / f"a.{kind}" for kind in ("svg", "trace", "html"))
    peakproof("why", "--svg", svg, "--trace", trace, "--html", page, model)
    ElementTree.parse(svg)
    assert any(name in event["name"] for event in json.loads(trace.read_text())["traceEvents"])
    assert "alert(1)" in page.read_text() and "<script>alert" not in page.read_text()


@pytest.mark.parametrize("statements", [1, 2, 10_000])
def test_sizes(peakproof, tmp_path, statements):
    """A long program's picture stays small."""
    model = chain(tmp_path / "m.json", statements)
    svg = tmp_path / "a.svg"
    peakproof("plan", "-q", "--time-limit", "2", "--svg", svg, model)
    ElementTree.parse(svg)
    assert svg.stat().st_size < 100_000


def test_original_trace(peakproof, tmp_path):
    """With --original the trace has the statements in the file's order."""
    path = tmp_path / "a.json"
    peakproof("why", "--original", "--trace", path, DATA / "programs/googlenet.infer.0.json")
    events = json.loads(path.read_text())["traceEvents"]
    steps = [e["args"]["statement"] for e in events if e["ph"] == "X" and not e["tid"]]
    assert steps == sorted(steps)


def test_nothing_on_error(peakproof, tmp_path):
    """A bad model leaves no file; the model is never overwritten."""
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    peakproof("plan", "--svg", tmp_path / "a.svg", "--html", tmp_path / "a.html", bad, code=65)
    assert list(tmp_path.iterdir()) == [bad]
    peakproof("plan", "--svg", tmp_path / "none/a.svg", chain(bad, 3), code=73)
    peakproof("plan", "--html", bad, bad, code=73)
    assert bad.read_text().startswith("{")


def test_bars(peakproof, tmp_path):
    """Bars fit into 80 columns, have blocks only where the locale has them, and mark the peak."""
    for statements in (1, 5, 66, 67, 1000):
        model = chain(tmp_path / "m.json", statements)
        for locale in ("C", "C.UTF-8"):
            shown = peakproof("why", model, env=environment() | {"LC_ALL": locale}).stdout
            bars = [line for line in shown.splitlines() if line[12:13] == "|"]
            assert len(bars) == 6 and all(len(line) <= 80 for line in bars)
            assert ("\u2588" in shown) == (locale != "C") and "\033" not in shown
            marks = [line for line in shown.splitlines() if "^" in line]
            assert len(marks) == 1 and "peak, step" in marks[0] and len(marks[0]) <= 80
            assert bars[0][marks[0].index("^")] in "#\u2588"
