"""Multiply-accumulates of a node, from the shapes of its operands.

Contractions are counted; elementwise work, reductions and moves are 0 (recomputation counts the
bytes that they write apart); an operator that is in no list here is None: unknown.
"""

import math
import re

# Generated C++ that contracts: templates of matrix products and attention.
CONTRACTS = re.compile(r"micro_gemm|cpublas|brgemm|at::native::|mkldnn|\bgemm\b")
# Operators without multiply-accumulates that count: they move, compare, add up or average.
PLAIN = re.compile(
    r"_?(adaptive_)?(avg|max|fractional_max)_pool|_?upsample|topk|sort|kthvalue|median|mode$|cum|logcum"
    r"|_?embedding|index|_?unsafe_index|_?unsafe_masked|masked|gather|scatter|select|slice|cat$|stack$"
    r"|max|min|arg|grid_sampler|reflection_pad|replication_pad|constant_pad|bucketize|searchsorted"
    r"|native_(batch|layer|group)_norm|flip|roll|repeat|clone|copy|where|nan_to_num|col2im|im2col"
)


def _shape(value):
    shape = getattr(value, "shape", None)
    return None if shape is None else tuple(int(n) for n in shape)


def _per_output(weight, dimensions):
    """Multiply-accumulates per element of a convolution's output, from its weight's shape."""
    skip = 2 if len(weight) > dimensions else 1  # packed: groups apart
    return math.prod(weight[skip:])


def _convolution(args, kwargs, result, place):
    x, weight = _shape(args[0]), _shape(args[1])
    transposed = kwargs.get("transposed", args[place] if len(args) > place else False)
    elements = math.prod(x if transposed else _shape(result))
    return elements * _per_output(weight, len(x))


def _convolution_backward(args, kwargs, result):
    grad, x, weight = (_shape(a) for a in args[:3])
    transposed, mask = bool(args[7]), args[10]
    once = math.prod(x if transposed else grad) * _per_output(weight, len(x))
    return once * (bool(mask[0]) + bool(mask[1]))


def _attention(args, kwargs, result):
    q, k, v = (_shape(a) for a in args[:3])
    return math.prod(q[:-1]) * k[-2] * (q[-1] + v[-1])


def _attention_backward(args, kwargs, result):
    q, k, v = (_shape(a) for a in args[1:4])
    return math.prod(q[:-1]) * k[-2] * (3 * q[-1] + 2 * v[-1])


def _product(first):
    """A product of which operand `first` is the left matrix, or a batch of them."""

    def count(args, kwargs, result):
        return math.prod(_shape(result)) * _shape(args[first])[-1]

    return count


def _two_products(args, kwargs, result):
    return math.prod(_shape(result)) * (_shape(args[0])[-1] + _shape(args[2])[-1])


def _one_by_one(args, kwargs, result):
    return math.prod(_shape(result)) * math.prod(_shape(args[1])[1:])


def _recurrent(args, kwargs, result):
    steps, batch = _shape(args[0])[:2]
    return steps * batch * (math.prod(_shape(args[1])) + math.prod(_shape(args[2])))


COUNT = {
    "mm": _product(0),
    "_int_mm": _product(0),
    "bmm": _product(0),
    "mv": _product(0),
    "dot": _product(0),
    "addmm": _product(1),
    "bias_addmm": _product(1),
    "baddbmm": _product(1),
    "addmv": _product(1),
    "mm_plus_mm": _two_products,
    "conv1x1_via_mm": _one_by_one,
    "_linear_pointwise": _product(0),
    "_mkl_linear": _product(0),
    "_convolution_pointwise": lambda a, k, r: _convolution(a, k, r, len(a)),
    "convolution": lambda a, k, r: _convolution(a, k, r, 6),
    "_convolution": lambda a, k, r: _convolution(a, k, r, 6),
    "convolution_backward": _convolution_backward,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "mkldnn_rnn_layer": _recurrent,
}


def operator_name(function):
    """ "mm" of extern_kernels.mm, torch.ops.aten.mm.default, aten.mm.out."""
    return function.removeprefix("torch.ops.").split(".")[1]


def macs_of(function, args, kwargs, result):
    """Multiply-accumulates of one call, or None. `result`: what it made or was given as `out`."""
    name = operator_name(function)
    count = COUNT.get(name)
    if count is None:
        return 0 if PLAIN.match(name) else None
    if isinstance(result, (list, tuple)):
        result = result[0]
    try:
        return int(count(args, kwargs, result))
    except (TypeError, IndexError, AttributeError, ValueError):
        return None


def macs_of_kernel(source):
    """Of a generated C++ kernel: 0, or None for a template that contracts."""
    return None if CONTRACTS.search(source) else 0
