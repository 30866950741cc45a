"""Why: the step that sets a program's peak, and every tensor that is held there."""

from . import core


def explain(program, order=None, source_text=None, limit=30):
    """Text about a program dict in an order (None: the original). Bytes throughout.

    Names the statement that sets the peak with its source line, every storage held there with the
    lines since when and until when, and the lever that can still help.
    """
    order = list(range(len(program["statements"]))) if order is None else list(order)
    facts = core.simulate(program, order)
    statements, storages = program["statements"], program["storages"]
    if not order:
        return f"{program.get('name', '')}: no statement\n"
    top = max(range(len(order)), key=lambda i: facts["step"][i])
    s = statements[order[top]]
    lines = [
        f"{program.get('name', '')}: peak {facts['peak']:,} bytes at step {top + 1} "
        f"of {len(order)}: {s['name']} (line {s.get('line', '?')})"
    ]
    lines += _source_line(source_text, s.get("line"))
    work = s.get("work", 0)
    work = sum(work) if isinstance(work, list) else work
    if work:
        lines.append(f"  {work:>14,}  work: scratch of the statement itself")
    held = _held(facts, storages, top)
    for number in held[:limit]:
        since = _moment(facts["first"][number], statements, order, "before the program")
        until = _moment(facts["last"][number], statements, order, "after the program")
        size, name = storages[number]["bytes"], storages[number]["name"]
        lines.append(f"  {size:>14,}  {name}: since {since}, until {until}")
    rest = held[limit:]
    if rest:
        size = sum(storages[n]["bytes"] for n in rest)
        lines.append(f"  {size:>14,}  {len(rest)} smaller ones")
    return "\n".join(lines) + "\n"


def _held(facts, storages, step):
    held = [
        n
        for n, s in enumerate(storages)
        if s["bytes"] and facts["first"][n] <= step <= facts["last"][n]
    ]
    return sorted(held, key=lambda n: (-storages[n]["bytes"], n))


def _moment(step, statements, order, outside):
    if not 0 <= step < len(order):
        return outside
    return f"line {statements[order[step]].get('line', '?')}"


def _source_line(text, line):
    if not text or not line:
        return []
    found = text.split("\n")[line - 1].strip()
    return ["  " + (found if len(found) <= 160 else found[:157] + "...")]


def lever(report):
    """What can still help, from a report's numbers."""
    if report["peak"] is None:
        return ""
    if not report["optimal"]:
        gap = report["peak"] - report["lower_bound"]
        return f"An order may still be lower by up to {gap:,} bytes: raise the time limit."
    if report["peak"] == report["floor"]:
        return "No order and no recomputation goes lower: only splitting that operator helps."
    reuses = (report.get("reuses") or 0) if not report.get("splits") else 0
    hint = f", and splitting reuses ({reuses} could be: split_reuse=True)" if reuses else ""
    if report.get("curve"):
        return f"No order goes lower (proved), and recomputation found nothing lower{hint}."
    return f"No order goes lower (proved). Recomputing a value may (recompute=True){hint}."
