"""The Dynamo backend: Inductor, with every program handed to one session of this process."""

from .session import Session, active

_session = None


def default_session():
    """The session that the backend feeds; made at first use."""
    global _session
    if _session is None:
        _session = Session()
    return _session


def peakproof(graph_module, example_inputs, **options):
    """`torch.compile(model, backend="peakproof")`. Options are Inductor's, as for its backend."""
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    session = default_session()

    def inner(*args, **kwargs):
        # Backward graphs are compiled later, outside the call below.
        with active(session):
            return compile_fx_inner(*args, **kwargs)

    with active(session):
        return compile_fx(
            graph_module, example_inputs, inner_compile=inner, config_patches=options or None
        )
