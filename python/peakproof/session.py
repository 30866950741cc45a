"""Sessions: which programs are optimized, and what came of it."""

import contextlib
import logging
import os
import threading

from .optimize import Optimizer, Options

log = logging.getLogger("peakproof")


class Dispatcher:
    """Stands in for a program's `call`: optimizes it at the first call, then runs what won."""

    def __init__(self, session, module, text):
        self.session = session
        self.module = module
        self.text = text
        self.stock = module.call
        self.function = None
        self.result = None

    def __call__(self, args):
        function = self.function
        if function is None:
            function = self.first(args)
        return function(args)

    def first(self, args):
        """Optimizes, unless another thread is at it: then this call runs stock."""
        if not self.session.lock.acquire(blocking=False):
            return self.stock
        try:
            if self.function is None:
                self.function = self.session.optimize(self, args) or self.stock
            return self.function
        finally:
            self.session.lock.release()


class ModuleView:
    """A generated module with another `call`; everything else is the module's own.

    The module itself stays as it is: Inductor hands one module to several compilations.
    """

    def __init__(self, module, call):
        self.__dict__["_module"] = module
        self.__dict__["call"] = call

    def __getattr__(self, name):
        return getattr(self.__dict__["_module"], name)

    def __setattr__(self, name, value):
        setattr(self.__dict__["_module"], name, value)


class Session:
    """Programs that were compiled while it was active, each with its result."""

    def __init__(self, **options):
        self.options = Options(**options)
        self.results = []
        self.lock = threading.RLock()
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self):
        self.lock = threading.RLock()

    def wrap(self, module, text):
        return ModuleView(module, Dispatcher(self, module, text))

    def optimize(self, dispatcher, args):
        module = dispatcher.module
        name = f"program{len(self.results)}"
        optimizer = Optimizer(
            name, dispatcher.text, module.__dict__, dispatcher.stock, self.options
        )
        result = optimizer.run(args)
        self.results.append(result)
        dispatcher.result = result
        if result.report.state == "refused":
            log.warning("%s stays as it is: %s", name, result.report.reason)
        return result.function

    def __enter__(self):
        activate(self)
        return self

    def __exit__(self, *exception):
        deactivate(self)
        return False


_active = []
_original = None


def activate(session):
    _install_hook()
    _active.append(session)


def deactivate(session):
    _active.remove(session)


@contextlib.contextmanager
def active(session):
    activate(session)
    try:
        yield session
    finally:
        deactivate(session)


def _install_hook():
    """Wraps the one function through which fresh and cached programs become modules."""
    global _original
    if _original is not None:
        return
    from torch._inductor.codecache import PyCodeCache

    _original = PyCodeCache.load_by_key_path.__func__

    def load_by_key_path(cls, key, path, *args, **kwargs):
        module = _original(cls, key, path, *args, **kwargs)
        if not _active or not hasattr(module, "call"):
            return module
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if not text.startswith("# AOT ID:"):
            return module
        return _active[-1].wrap(module, text)

    PyCodeCache.load_by_key_path = classmethod(load_by_key_path)


def optimize(**options):
    """A session as a context: programs compiled inside are optimized at their first call."""
    return Session(**options)
