"""Public architectures with random weights: written out here (sequence, vision), and those of
torchvision, timm and transformers where these are installed (public).

`MODELS[name]` returns (module, inputs). Everything is small enough to compile on two cores.
"""

from . import public, sequence, vision

# The quick ones to compile first.
_LAST = ["vgg", "alexnet", "googlenet", "hrnet", "resnet18", "deeplabv3_small", "deeplabv3_r50_224"]
_LAST += ["resnet34", "resnet50", "resnext"]
_ALL = {**sequence.MODELS, **vision.MODELS}
MODELS = {name: _ALL[name] for name in [n for n in _ALL if n not in _LAST] + _LAST}
MODELS.update(public.MODELS)
