"""The table of cases on a real device, where one is: the allocator itself must give its values.

Needs torch with CUDA in the Python that runs it; is skipped elsewhere. It has not run on a device
yet. Nothing else may use torch in the process: the cache must be empty.
"""

import re

import pytest
from test_cases import bytes_of, read_cases, sizes, split

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def settle(settings):
    """Applies settings; what is not named gets its default, and so does what would stay."""
    wanted = [word for word in re.split(r",(?![^\[]*\])", settings) if word]
    wanted = [word for word in wanted if not word.startswith("per_process_memory_fraction")]
    if not any(word.startswith("large_segment_size_mb") for word in wanted):
        wanted.insert(0, "large_segment_size_mb:20")
    if not any(word.startswith("expandable_segments") for word in wanted):
        wanted.append("expandable_segments:False")
    torch._C._accelerator_setAllocatorSettings(",".join(wanted))


def fraction_of(case):
    """What a process may take, as a fraction of this device: the case's own fraction of the case's
    capacity. The driver's refusal is stood in for by it; half a byte guards against rounding."""
    match = re.search(r"per_process_memory_fraction:([\d.]+)", case["settings"])
    allowed = case["capacity"] * (float(match.group(1)) if match else 1)
    return (allowed + 0.5) / torch.cuda.get_device_properties(0).total_memory


class Device:
    """Answers events as tests/caching/events.c does."""

    def __init__(self):
        self.held, self.streams = {}, {}

    def stream(self, number):
        if number == 0:
            return torch.cuda.default_stream()
        return self.streams.setdefault(number, torch.cuda.Stream())

    def do(self, event):
        words = event.split()
        place = []
        if words[0] == "a":
            stream = self.stream(int(words[3]) if len(words) > 3 else 0)
            try:
                self.held[words[1]] = torch.cuda.caching_allocator_alloc(
                    int(words[2]), stream=stream
                )
                place = [self.held[words[1]]]
            except RuntimeError:  # torch.OutOfMemoryError is one
                place = [-2]
        elif words[0] == "f":
            torch.cuda.caching_allocator_delete(self.held.pop(words[1]))
        elif words[0] == "e":
            torch.cuda.empty_cache()
        elif words[0] == "s":
            settle(words[1] if len(words) > 1 else "")
        elif words[0] == "d":
            return [
                f"{b['address']}+{b['size']}{'' if b['state'] == 'inactive' else 'a'}"
                f"{'|' if i == 0 else ''}@0"
                for s in torch.cuda.memory_snapshot()
                for i, b in enumerate(s["blocks"])
            ]
        stats = torch.cuda.memory_stats()
        keys = ("requested", "allocated", "reserved")
        return [stats[f"{key}_bytes.all.current"] for key in keys] + place


def runs_here(case):
    """A driver cannot be told to refuse, and a limit is always a fraction here."""
    refuses = any(line.startswith("n ") for _, line in case["lines"])
    collects = "garbage_collection" in case["settings"]
    return not refuses and not (
        collects and case["capacity"] and "fraction" not in case["settings"]
    )


@pytest.mark.parametrize(
    "case", list(filter(runs_here, read_cases())), ids=lambda case: case["name"].replace(" ", "-")
)
def test_case_on_the_device(case):
    device, places = Device(), {}
    torch.cuda.empty_cache()
    if torch.cuda.memory_reserved():
        pytest.skip("something else holds memory of the allocator")
    before = torch.cuda.get_per_process_memory_fraction()
    try:
        settle(case["settings"])
        if case["capacity"]:
            torch.cuda.set_per_process_memory_fraction(fraction_of(case))
        for number, line in case["lines"]:
            event, want = split(line)
            answer, where = device.do(event), f"cases.txt:{number}"
            if event == "d":
                wanted = [w if w == "|" else (bytes_of(w.rstrip("a")), w[-1] == "a") for w in want]
                assert [w for w in sizes(answer) if w != "|" or "|" in wanted] == wanted, where
            elif want:
                assert answer[:3] == [bytes_of(w) for w in want[:3]], where
            if event[0] != "a":
                continue
            assert (answer[3] == -2) == ("full" in want), where
            for word in want[3:]:
                if word != "full":
                    name, offset = word[1:].split("+")
                    assert answer[3] == places[name] + bytes_of(offset), where
            places[event.split()[1]] = answer[3]
    finally:
        for pointer in device.held.values():
            torch.cuda.caching_allocator_delete(pointer)
        torch.cuda.set_per_process_memory_fraction(before)
        settle("")
        torch.cuda.empty_cache()
