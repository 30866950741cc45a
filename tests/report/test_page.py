"""The page in headless Chromium: no error, pointer and keys work, 10,000 statements are smooth."""

import json
import re
import shutil
import subprocess
import zlib

import pytest
from conftest import chain
from harness import DATA

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="no chromium here (apt-get install chromium-headless-shell)"
)

PROBE = """<script>
const seen = { title: document.title }, chart = document.getElementById("chart");
const text = (id) => document.getElementById(id).textContent;
const key = (name) =>
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
/* --dump-dom shows no frames; without it all is done before the page has loaded, in real time. */
window.requestAnimationFrame = (draw) => draw();
const point = (part) => {
  const box = chart.getBoundingClientRect();
  const x = box.left + left + part * (box.width - left - right);
  chart.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: box.top + 99 }));
};
  seen.first = text("step-title");
  for (const name of ["Home", "ArrowRight", "End", "ArrowLeft", "p", "o"]) {
    key(name);
    seen[name] = text("step-title");
  }
  point(0.5);
  seen.point = text("step-title");
  seen.rows = document.querySelectorAll("#largest tbody tr").length;
  seen.levers = text("levers");
  /* The least of several: another process may take the processor for a while. */
  const least = (count, draw) => {
    let found = Infinity;
    for (let round = 0; round < 5; round++) {
      const begin = performance.now();
      for (let i = 0; i < count; i++) draw(i);
      found = Math.min(found, (performance.now() - begin) / count);
    }
    return found;
  };
  seen.move = least(20, (i) => { step = Math.floor(n * i / 20); cursor(); describe(); });
  seen.paint = least(1, paint);
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen).replace(/</g, "\\\\u003c");
  document.body.append(out);
</script></body>"""


def chromium(tmp_path, page, *arguments):
    """Opens a page from a file; returns (standard output, console messages)."""
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={tmp_path}/chromium",
            "--enable-logging=stderr",
            *arguments,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def probe(peakproof, tmp_path, model):
    """What the page shows when it is used (dict)."""
    page = tmp_path / "page.html"
    peakproof("plan", "-q", "--time-limit", "5", "--html", page, model)
    text = page.read_text()
    assert not re.search(r"(src|href)=\"(?!data:)|https?:", text.split('id="data"')[0])
    page.write_text(text.replace("</body>", PROBE))
    shown, console = chromium(tmp_path, page, "--dump-dom")
    assert not console
    seen = re.search(r'<pre id="seen">(.*?)</pre>', shown, re.DOTALL)
    assert seen, shown[-2000:]
    return json.loads(seen.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@pytest.mark.parametrize("statements", [0, 100, 10_000])
def test_page(peakproof, tmp_path, statements):
    if statements:
        model, n = chain(tmp_path / "m.json", statements), statements
    else:
        model, n = DATA / "programs/googlenet.infer.0.json", 89
    seen = probe(peakproof, tmp_path, model)
    planned = f"of {n}, planned order"
    assert seen["Home"] == f"Step 0 {planned}" and seen["ArrowRight"] == f"Step 1 {planned}"
    assert (
        seen["End"] == f"Step {n - 1} {planned}" and seen["ArrowLeft"] == f"Step {n - 2} {planned}"
    )
    assert seen["p"] == seen["first"]
    assert seen["o"].endswith("original order")
    assert abs(int(seen["point"].split()[1]) - n // 2) <= 1
    assert 1 <= seen["rows"] <= 10 and "recomputation" in seen["levers"]
    # Smooth: a step and a whole drawing within a frame or few, on a machine without a GPU.
    print(seen["move"], seen["paint"])
    assert 0 < seen["move"] < 50 and seen["paint"] < 200, seen


def test_hostile_names(peakproof, tmp_path):
    name = "</script><script>console.error(1)</script><img src=x onerror=console.error(2)>"
    model = chain(tmp_path / "<b>&.json", 30, name)
    assert probe(peakproof, tmp_path, model)["rows"] >= 1


def corner(picture):
    """The red, green and blue of the first pixel of a PNG, which no filter changes."""
    data, at, packed = picture.read_bytes(), 8, b""
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    return tuple(zlib.decompress(packed)[1:4])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_schemes(peakproof, tmp_path, scheme):
    """The page is drawn on the background of the scheme."""
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    peakproof("plan", "-q", "--html", page, DATA / "programs/googlenet.infer.0.json")
    setting = f"--blink-settings=preferredColorScheme={'01'[scheme == 'light']}"
    console = chromium(
        tmp_path, page, setting, "--virtual-time-budget=3000", f"--screenshot={picture}"
    )[1]
    assert not console and picture.stat().st_size > 10_000
    assert corner(picture) == {"light": (255, 255, 255), "dark": (0x16, 0x17, 0x1B)}[scheme]
