"""peakproof: the order of a program's statements with the lowest peak memory, proved.

peakproof.plan(program)                        a program as a dict; needs no torch
torch.compile(model, backend="peakproof")      every program of this model
with peakproof.optimize() as session: ...      every program compiled inside
peakproof.load(directory)                      what a session saved, in another process
python -m peakproof run [--out DIR] script.py  a whole script
python -m peakproof onnx-shapes IN -o OUT      shapes for an ONNX model; needs onnx, no torch
python -m peakproof cuda-snapshot IN -o OUT    a CUDA memory snapshot as JSON; needs no torch
"""

from .errors import Refusal

__version__ = "0.1.0"
__all__ = ["Refusal", "default_session", "load", "optimize", "plan"]


def __getattr__(name):
    # Not imported at once: onnx-shapes works without the extension.
    if name == "plan":
        from .core import plan

        return plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def optimize(**options):
    """A session as a context: programs compiled inside are optimized at their first call.

    Options: time_limit (seconds for planning one program, 10), state_limit (0: the default),
    split_reuse (False), recompute (False) with max_extra_macs (0.01: a hundredth of the program's;
    None: any) and cap (2: how often a statement may run), install (True). ValueError for a wrong
    one. See doc/inductor.md. Needs torch.
    """
    from .session import Session

    return Session(**options)


def load(directory):
    """The programs that a session saved in `directory`, applied to what is compiled from now on.

    Returns a session, active until its `close` or the end of its `with` block. Raises ValueError if
    the directory is not a saved session. Needs torch.
    """
    from .saved import load as load_saved

    return load_saved(directory)


def default_session():
    """The session of `torch.compile(..., backend="peakproof")` in this process. Needs torch."""
    from .backend import default_session as found

    return found()
