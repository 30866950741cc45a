"""The Dynamo backend: Inductor, with every program handed to one session of this process."""

import dataclasses

from .session import Session, active

_session = None


def default_session():
    """The session that the backend feeds; made at first use."""
    global _session
    if _session is None:
        _session = Session()
    return _session


def peakproof(graph_module, example_inputs, *, mode=None, options=None):
    """`torch.compile(model, backend="peakproof")`; mode and options are those of Inductor.

    Options that begin with "peakproof." are those of peakproof.optimize, for the whole session.
    """
    import torch
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    ours = {k: v for k, v in (options or {}).items() if k.startswith("peakproof.")}
    options = {k: v for k, v in options.items() if k not in ours} if options else options
    session = default_session()
    if ours:
        changes = {k.removeprefix("peakproof."): v for k, v in ours.items()}
        session.options = dataclasses.replace(session.options, **changes)
    patches = torch._TorchCompileInductorWrapper(mode, options, None).config

    def inner(*args, **kwargs):
        # Backward graphs are compiled later, outside the call below.
        with active(session):
            return compile_fx_inner(*args, **kwargs)

    with active(session):
        return compile_fx(
            graph_module, example_inputs, inner_compile=inner, config_patches=patches or None
        )
