"""Public architectures with random weights, written out here so that nothing has to be downloaded.

`MODELS[name]` returns (module, inputs). Everything is small enough to compile on two cores.
"""

from . import sequence, vision

MODELS = {**vision.MODELS, **sequence.MODELS}
