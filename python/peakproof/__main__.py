"""python -m peakproof: run a script with every compiled program optimized; explain a saved session.

Exit codes follow sysexits.h; a script's own exit code is passed on.
"""

import argparse
import os
import runpy
import sys

from . import cuda, onnx_shapes

MEMTRACE = "libpeakproof_memtrace.so"
CAP_MAX = 1000000


def memtrace_path():
    """The library to preload, or None: beside the package, or as PEAKPROOF_MEMTRACE says."""
    named = os.environ.get("PEAKPROOF_MEMTRACE")
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), MEMTRACE)
    for path in (named, here):
        if path and os.path.exists(path):
            return path
    return None


def preload():
    """Starts this process again with memtrace preloaded, once. Returns if that is not possible.

    Children that it starts itself (compilers, for one) run without it.
    """
    from .meter import preloaded

    path = memtrace_path()
    if preloaded() and path and os.environ.get("LD_PRELOAD", "").startswith(path):
        os.environ["LD_PRELOAD"] = os.environ["LD_PRELOAD"][len(path) :].strip()
    if preloaded() or path is None or os.environ.get("PEAKPROOF_PRELOADED"):
        return
    before = os.environ.get("LD_PRELOAD", "")
    env = dict(os.environ, PEAKPROOF_PRELOADED="1")
    env["LD_PRELOAD"] = f"{path} {before}".strip()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], env)


def run(options):
    preload()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch.profiler talks to stderr otherwise
    from .meter import preloaded
    from .session import Session

    if not preloaded():
        print(
            "peakproof: memtrace is not preloaded, torch.profiler counts instead", file=sys.stderr
        )
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
    session = Session(
        split_reuse=options.split_reuse,
        recompute=options.recompute,
        max_extra_macs=options.max_extra_macs,
        cap=options.cap,
        time_limit=options.time_limit,
    )
    try:
        with session:
            runpy.run_path(options.script, run_name="__main__")
    except KeyboardInterrupt:
        return 130
    finally:
        sys.stdout.flush()
        print(session.table(), end="", file=sys.stderr)
        if options.out:
            session.save(options.out)
    return 0


def why(options):
    from .saved import why as explain

    try:
        print(explain(options.directory, options.name, options.stock), end="")
    except ValueError as e:
        print(f"peakproof: {e}", file=sys.stderr)
        return 65
    return 0


def parser():
    p = argparse.ArgumentParser(prog="python -m peakproof", description=__doc__)
    p.error = _usage(p)
    verbs = p.add_subparsers(dest="verb", required=True)
    r = verbs.add_parser("run", help="run a script with every compiled program optimized")
    r.error = _usage(r)
    r.add_argument("--out", metavar="DIR", help="save the session there")
    r.add_argument("--split-reuse", action="store_true", help="undo reuses where that is safe")
    r.add_argument("--recompute", action="store_true", help="run statements again to go lower")
    r.add_argument(
        "--max-extra-macs",
        type=_share,
        default=0.01,
        metavar="PERCENT",
        help="that recomputation may cost (1%%), or any",
    )
    r.add_argument(
        "--cap", type=int, default=2, metavar="N", help="how often a statement may run (2)"
    )
    r.add_argument("--time-limit", type=float, default=10.0, metavar="SECONDS", help="a program")
    r.add_argument("script")
    r.add_argument("arguments", nargs=argparse.REMAINDER)
    onnx_shapes.add_parser(verbs).error = _usage(p)
    cuda.add_parser(verbs).error = _usage(p)
    w = verbs.add_parser("why", help="explain the peaks of a saved session")
    w.error = _usage(w)
    w.add_argument("--stock", action="store_true", help="as Inductor ordered it")
    w.add_argument("directory")
    w.add_argument("name", nargs="?")
    return p


def _share(text):
    """A fraction of "0.4%"; None of "any"."""
    if text == "any":
        return None
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not text.endswith("%") or not 0 <= share < float("inf"):
        raise argparse.ArgumentTypeError(f'wants a percentage like 0.4%, or any, not "{text}"')
    return share


def _usage(p):
    def error(message):
        p.print_usage(sys.stderr)
        print(f"{p.prog}: {message}", file=sys.stderr)
        sys.exit(64)

    return error


def main():
    options = parser().parse_args()
    if options.verb == "why":
        return why(options)
    if options.verb == "onnx-shapes":
        return onnx_shapes.run(options)
    if options.verb == "cuda-snapshot":
        return cuda.run(options)
    if not 1 <= options.cap <= CAP_MAX:
        print(f"peakproof: --cap wants a number from 1 to {CAP_MAX}", file=sys.stderr)
        return 64
    if not os.path.exists(options.script):
        print(f"peakproof: cannot read {options.script}", file=sys.stderr)
        return 66
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
