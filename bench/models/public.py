"""Models of torchvision, timm and transformers with random weights, where these install.

`MODELS[name]` returns (module, inputs); a name says where the model comes from (tv, timm, hf) and
the size of the image. Empty without the packages: nothing else in bench needs them.
"""

import importlib.util
import warnings

import torch
from torch import nn


class Only(nn.Module):
    """A model whose output is one entry of what it returns."""

    def __init__(self, model, key):
        super().__init__()
        self.model, self.key = model, key

    def forward(self, *inputs):
        return self.model(*inputs)[self.key]


def image(size, n=1):
    return (torch.randn(n, 3, size, size),)


_declared = None  # a Library: its operators go away with the object


def _torchvision():
    """The package.

    A CPU torch cannot load the extension of PyPI's wheel, which is built for CUDA. No model here
    needs its operators, but the import needs two of them declared.
    """
    global _declared
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import torchvision
        except RuntimeError:
            _declared = torch.library.Library("torchvision", "FRAGMENT")
            for name in ("nms", "qnms"):
                operands = "Tensor dets, Tensor scores, float iou_threshold"
                _declared.define(f"{name}({operands}) -> Tensor")
            import torchvision
        import torchvision.models.segmentation  # noqa: F401
    return torchvision


def _first_torchvision():
    """timm and transformers import it too, where it is installed."""
    if importlib.util.find_spec("torchvision") is not None:
        _torchvision()


def classifier(name, size, n=1, **options):
    def make():
        model = getattr(_torchvision().models, name)(weights=None, **options)
        return model, image(size, n)

    return make


def deeplab(backbone, size, n=1):
    def make():
        make_model = getattr(_torchvision().models.segmentation, f"deeplabv3_{backbone}")
        model = make_model(weights=None, weights_backbone=None)
        return Only(model, "out"), image(size, n)

    return make


def timm(name, size, n=1):
    def make():
        _first_torchvision()
        from timm import create_model

        return create_model(name, pretrained=False), image(size, n)

    return make


def tokens(n, t):
    return torch.randint(0, 200, (n, t), generator=torch.Generator().manual_seed(1))


def hf_bert():
    _first_torchvision()
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=1000,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
    )
    return Only(BertModel(config), 0), (tokens(2, 64),)


def hf_gpt2():
    _first_torchvision()
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(vocab_size=1000, n_embd=128, n_layer=2, n_head=4, n_positions=128)
    config.use_cache = False
    return Only(GPT2Model(config), 0), (tokens(2, 64),)


def hf_t5():
    _first_torchvision()
    from transformers import T5Config, T5Model

    config = T5Config(vocab_size=1000, d_model=128, d_kv=32, d_ff=256, num_layers=2, num_heads=4)
    config.use_cache = False

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = T5Model(config)

        def forward(self, a, b):
            return self.model(input_ids=a, decoder_input_ids=b)[0]

    return Both(), (tokens(2, 48), tokens(2, 48))


SIZES = (128, 224, 320, 520)
BACKBONES = {"mobilenet_v3_large": "mnv3", "resnet50": "r50", "resnet101": "r101"}


def _vision():
    found = {
        f"tv_deeplabv3_{short}_{size}": deeplab(name, size)
        for size in SIZES
        for name, short in BACKBONES.items()
    }
    # Where doc/inductor.md's formulas say that order gives most.
    found["tv_deeplabv3_r50_552"] = deeplab("resnet50", 552)
    found["tv_deeplabv3_mnv3_64x2"] = deeplab("mobilenet_v3_large", 64, 2)
    found["tv_deeplabv3_r50_64x2"] = deeplab("resnet50", 64, 2)
    found["tv_googlenet_224"] = classifier("googlenet", 224, aux_logits=False, init_weights=False)
    found["tv_googlenet_64x2"] = classifier(
        "googlenet", 64, 2, aux_logits=False, init_weights=False
    )
    found["tv_resnet18_224"] = classifier("resnet18", 224)
    found["tv_resnet18_64"] = classifier("resnet18", 64, 2)
    found["tv_resnet18_96"] = classifier("resnet18", 96, 2)
    found["tv_resnet18_96x4"] = classifier("resnet18", 96, 4)
    for name, size in (
        ("squeezenet1_1", 96),
        ("alexnet", 96),
        ("shufflenet_v2_x0_5", 96),
        ("mobilenet_v2", 96),
        ("mobilenet_v3_small", 96),
        ("mnasnet0_5", 96),
        ("efficientnet_b0", 96),
        ("regnet_x_400mf", 96),
        ("densenet121", 64),
        ("vgg11_bn", 64),
    ):
        found[f"tv_{name}_{size}"] = classifier(name, size, 2)
    return found


def _timm():
    names = (
        ("vit_tiny_patch16_224", 224),
        ("convnext_atto", 96),
        ("hrnet_w18_small", 96),
        ("mobilenetv4_conv_small", 96),
        ("ghostnet_100", 96),
        ("dla34", 96),
    )
    return {f"timm_{name}": timm(name, size) for name, size in names}


def installed(package):
    """Importing these takes seconds: done for a model of theirs only."""
    return importlib.util.find_spec(package) is not None


MODELS = {}
if installed("torchvision"):
    MODELS.update(_vision())
if installed("torchvision") and installed("timm"):
    MODELS.update(_timm())
if installed("transformers"):
    MODELS.update({"hf_bert": hf_bert, "hf_gpt2": hf_gpt2, "hf_t5": hf_t5})
