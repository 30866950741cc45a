"""The Dynamo backend: Inductor, with every program handed to one session of this process."""

from .session import Session, active

_session = None


def default_session():
    """The session that the backend feeds; made at first use."""
    global _session
    if _session is None:
        _session = Session()
    return _session


def peakproof(graph_module, example_inputs, *, mode=None, options=None):
    """`torch.compile(model, backend="peakproof")`; mode and options are those of Inductor."""
    import torch
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    patches = torch._TorchCompileInductorWrapper(mode, options, None).config

    session = default_session()

    def inner(*args, **kwargs):
        # Backward graphs are compiled later, outside the call below.
        with active(session):
            return compile_fx_inner(*args, **kwargs)

    with active(session):
        return compile_fx(
            graph_module, example_inputs, inner_compile=inner, config_patches=patches or None
        )
