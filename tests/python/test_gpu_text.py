"""CUDA programs as text: split, modelled and permuted where no device is."""

import ast
import glob
import os
import textwrap
from collections import Counter

import pytest
from peakproof import core, static, triton
from peakproof import split as kinds
from peakproof.errors import Refusal
from peakproof.split import split

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "inductor-cuda")
NAMES = [os.path.basename(p)[:-7] for p in sorted(glob.glob(os.path.join(DATA, "*.py.txt")))]
PLANNED = ["hand/old_inference", *(n for n in NAMES if n != "partitions_inference")]


def read(name):
    with open(os.path.join(DATA, name + ".py.txt"), encoding="utf-8") as f:
        return f.read()


def whole(planned):
    """The text of the program with its permuted `call` in the place of the stock one."""
    lines = planned.source.text.split("\n")
    call = next(
        n for n in ast.walk(ast.parse(planned.source.text)) if getattr(n, "name", None) == "call"
    )
    body = textwrap.indent(planned.text, " " * call.col_offset).rstrip("\n").split("\n")
    return "\n".join(lines[: call.lineno - 1] + body + lines[call.end_lineno :])


def kept(source):
    """The statements that a permutation must keep, as often as they occur."""
    return Counter((s.text, s.comments) for s in source.statements if s.kind != kinds.FREE)


@pytest.mark.parametrize("name", PLANNED)
def test_permuted(name):
    """The permuted text has the same statements in the planned order, blocks live as we say."""
    planned = static.plan(read(name), name)
    plan, model = planned.plan, planned.model
    assert plan["optimal"] and plan["peak_after"] == plan["lower_bound"] <= model.stock_peak
    again = split(whole(planned))
    assert kept(again) == kept(planned.source)
    assert (again.device, again.guard) == (planned.source.device, planned.source.guard)
    texts = [planned.source.statements[i].text for i in planned.order]
    assert [s.text for s in again.nodes] == texts
    # Modelled from its own text, with its own frees, it has the planned peak.
    other = static.plan(whole(planned), name)
    assert other.model.stock_peak == plan["peak_after"] == other.plan["peak_before"]
    assert other.plan["peak_after"] == plan["peak_after"]
    blocks_live_as_long_as_used(again)


def blocks_live_as_long_as_used(source):
    """An allocation stands before its first user, a `del` behind the last."""
    statements = source.statements
    for s in statements:
        if s.kind == kinds.ALLOCATE:
            rest = statements[s.index + 1 :]
            user = next(n for n in rest if s.targets[0] in n.uses and n.kind != kinds.ASSERT)
            between = statements[s.index + 1 : user.index]
            assert not [n for n in between if n.kind in (kinds.NODE, kinds.FREE)], s.text
        if s.kind == kinds.FREE:
            i = s.index
            while statements[i - 1].kind == kinds.FREE:
                i -= 1
            names = {name for n in statements[i : s.index + 1] for name in n.uses}
            before = statements[i - 1]
            assert set(s.uses) <= names and set(s.uses) <= {*before.uses, *before.targets}, s.text


LOWER = {
    "hand/old_inference": (198656, 133120),
    "inception_inference": (1548288, 1462272),
    "branches_train_backward": (1442304, 1441792),
}


@pytest.mark.parametrize("name", LOWER)
def test_lower(name):
    planned = static.plan(read(name))
    assert (planned.model.stock_peak, planned.plan["peak_after"]) == LOWER[name]


def test_a_certificate_for_the_checker(tmp_path):
    """The model is a program like any other: its file and certificate belong together."""
    import hashlib

    planned = static.plan(read("inception_inference"), "inception")
    text = core.text_of(planned.model.program)
    assert hashlib.sha256(text.encode()).hexdigest() in planned.plan["certificate"].decode()
    assert core.simulate(planned.model.program, planned.plan["order"])["peak"] == 1462272


def test_old_and_new_streams():
    """Old: one name for all launches. New: a name that gets the stream before each launch."""
    for name, uses in (("hand/old_inference", 1), ("inception_inference", None)):
        source = split(read(name))
        streams = [s for s in source.statements if s.kind == kinds.STREAM]
        launches = [s for s in source.nodes if s.function.endswith(".run")]
        assert len(streams) == (uses or len(launches))
        text = static.plan(read(name)).text.split("\n")
        places = [i for i, line in enumerate(text) if "get_raw_stream" in line]
        assert len(places) == len(streams)
        if uses is None:  # nothing but bindings between a stream and its launch
            for i in places:
                rest = (line.strip() for line in text[i + 1 :])
                first = next(t for t in rest if not t.startswith(("assert_", "#", "del ")))
                assert ".run(" in first, first


def test_notes():
    """What no text tells is said: the scratch of a library's operators."""
    assert not static.plan(read("hand/old_inference")).notes
    notes = static.plan(read("conv_backward")).notes
    assert len(notes) == 2 and all("scratch of torch.ops.aten.convolution_b" in n for n in notes)


def test_held_by_name():
    """What a backward was saved may be freed, its parameters not, unless the caller says so."""
    text = read("conv_backward")
    source = split(text)
    held = dict(zip(source.arguments, static.held_by_name(source)))
    assert held["primals_1"] and not held["tangents_1"] and not held["convolution"]
    nothing = static.plan(text, held=[True] * len(held)).model
    assert nothing.stock_peak < static.plan(text).model.stock_peak
    assert nothing.held_bytes > static.plan(text).model.held_bytes


# -- triton kernels --------------------------------------------------------------------------

KERNEL = """
@triton_heuristics.pointwise(
    size_hints=[16],
    triton_meta={{'signature': {signature}, 'device': DeviceProperties(type='cuda')}},
    inductor_meta={{'kernel_name': 'k'{mutated}}},
)
@triton.jit
def k({parameters}):
{body}
"""


def kernel(parameters, signature, body="pass", mutated="[]"):
    mutated = f", 'mutated_arg_names': {mutated}" if mutated is not None else ""
    body = textwrap.indent(body, "    ")
    return KERNEL.format(parameters=parameters, signature=signature, body=body, mutated=mutated)


P, N = "*fp32", "i32"
ROLES = [  # parameters, signature, body, mutated, roles
    ("in_ptr0, out_ptr0, n", {"in_ptr0": P, "out_ptr0": P, "n": N}, "", "[]", "rw"),
    ("in_ptr0, out_ptr0, n", {0: P, 1: P, 2: N}, "", "[]", "rw"),
    ("in_out_ptr0, n", {"in_out_ptr0": P, "n": N}, "", "['in_out_ptr0']", "w"),
    ("in_ptr0, n", {"in_ptr0": P, "n": N}, "x = tl.load(in_ptr0 + (n), None)", "[]", "r"),
    ("in_ptr0, n", {"in_ptr0": P, "n": N}, "tl.store(in_ptr0 + (n), n)", "[]", "w"),
    ("in_ptr0, n", {"in_ptr0": P, "n": N}, "tl.atomic_add(in_ptr0 + n, n)", "[]", "w"),
    ("in_ptr0, n", {"in_ptr0": P, "n": N}, "p = in_ptr0 + n\ntl.store(p, n)", "[]", "w"),
    ("in_ptr0, n", {"in_ptr0": P, "n": N}, "x = tl.load(in_ptr0)", "['in_ptr0']", "w"),
    ("out_ptr0, n", {"out_ptr0": P, "n": N}, "tl.atomic_add(out_ptr0, 1)", "['out_ptr0']", "w"),
    ("ws_ptr, n", {"ws_ptr": "*u8", "n": N}, "", "[]", "w"),
    ("x, y, n", {"x": P, "y": P, "n": N}, "tl.store(y, tl.load(x))", None, "ww"),
    ("arg_A, arg_B, out_ptr0", {"arg_A": P, "arg_B": P, "out_ptr0": P}, "", "[]", "rrw"),
]


@pytest.mark.parametrize("parameters, signature, body, mutated, roles", ROLES)
def test_roles(parameters, signature, body, mutated, roles):
    """Read only where signature, mutated_arg_names, Inductor's names and the body all say so."""
    found = triton.Parameters(kernel(parameters, signature, body or "pass", mutated))
    assert "".join(role[0] for role in found.roles.values()) == roles


# -- refusals --------------------------------------------------------------------------------

HEAD = (
    "k = async_compile.triton('k', '''"
    + kernel(
        "in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr",
        {"in_ptr0": P, "out_ptr0": P, "xnumel": N, "XBLOCK": "constexpr"},
    )
    + "''', device_str='cuda')\n"
)
TAIL = """
def get_args():
    from torch._dynamo.testing import rand_strided
    a = rand_strided((16, ), (1, ), device='cuda:0', dtype=torch.float32)
    return [a]
"""


def program(*lines, guard=("with torch.cuda._DeviceGuard(0):", "torch.cuda.set_device(0)")):
    """(text, line of the last of `lines`): a program that runs them behind an allocation."""
    body = ["    a, = args", "    args.clear()", f"    {guard[0]}"]
    body += [f"        {g}" for g in guard[1:]]
    body += ["        buf0 = empty_strided_cuda((16, ), (1, ), torch.float32)"]
    body += ["        stream0 = get_raw_stream(0)"]
    body += [f"        {line}" for line in lines]
    text = HEAD + "def call(args):\n" + "\n".join(body)
    return text + "\n    return (buf0, )\n" + TAIL, text.count("\n") + 1


def test_program():
    planned = static.plan(program("k.run(a, buf0, 16, stream=stream0)")[0])
    assert planned.plan["peak_after"] == 128  # the block, and an argument that may be freed


REFUSED = [
    (["with stream1:", "    k.run(a, buf0, 16, stream=stream0)"], "context of an unknown form", -1),
    (["with torch.cuda.stream(s):", "    pass"], "context of an unknown form", -1),
    (["default_stream = torch.cuda.current_stream()"], "effects are not known", 0),
    (["stream1 = get_external_object_by_index(3)"], "unknown function", 0),
    (["stream0 = get_raw_stream(1)"], "stream of an unknown form", 0),
    (["stream1 = get_raw_stream(a)"], "stream of an unknown form", 0),
    (["run_intermediate_hooks('buf0', buf0)"], "unknown function", 0),
    (["torch.cuda.synchronize()"], "effects are not known", 0),
    (["torch.cuda.set_device(0)"], "effects are not known", 0),
    (["partition0_args = [buf0]"], "graph partition", 0),
    (["(buf1,) = self.partitions[0](buf0)"], "assignment to several names", 0),
    (["buf1 = alloc_from_pool(p, 0, torch.float32, (4, ), (1, ))"], "memory pool", 0),
    (["if True:", "    pass"], "control flow", -1),
    (["return (buf0, )"], "return in a device guard", -3),
    (["k.run(a, buf0, stream=stream0)"], "do not fit", 0),
    (["k.run(a, 16, buf0, stream=stream0)"], "do not fit", 0),
    (["k.run(16, a, buf0, stream=stream0)"], "do not fit", 0),
    (["k.run(a, buf0, 16, grid=lambda m: (1, ), stream=stream0)"], "argument of an unknown", 0),
    (["k.run(a, buf0, 16, grid=open('f'), stream=stream0)"], "argument of an unknown", 0),
    (["k.run(a, buf0, 16)"], "launch of an unknown form", 0),
    (["k.run(a, buf0, 16, warmup=True, stream=stream0)"], "launch of an unknown form", 0),
    (["unknown.run(a, buf0, 16, stream=stream0)"], "unknown function", 0),
    (["buf0.copy_(a, True)"], "copy_ of an unknown form", 0),
    (["buf0.fill_(1)"], "method of a tensor", 0),
    (["buf0.zero_(1)"], "zero_ of an unknown form", 0),
]


@pytest.mark.parametrize("lines, reason, shift", REFUSED)
def test_refused(lines, reason, shift):
    text, last = program(*lines)
    with pytest.raises(Refusal, match=reason) as e:
        static.plan(text)
    at = {-3: HEAD.count("\n") + 4}.get(shift, last + shift)
    assert e.value.line == at, str(e.value)


GUARDS = [
    (("with torch.cuda._DeviceGuard(0):",), "device guard of an unknown form"),
    (("with torch.cuda._DeviceGuard(0):", "torch.cuda.set_device(1)"), "guard of an unknown form"),
    (("with torch.cuda._DeviceGuard(n):", "torch.cuda.set_device(n)"), "context of an unknown"),
    (("with torch.cuda._DeviceGuard(0) as g:", "torch.cuda.set_device(0)"), "context of an"),
    (("with torch.xpu._DeviceGuard(0):", "torch.xpu.set_device(0)"), "context of an unknown"),
]


@pytest.mark.parametrize("guard, reason", GUARDS)
def test_guards(guard, reason):
    with pytest.raises(Refusal, match=reason) as e:
        static.plan(program("pass", guard=guard)[0])
    assert e.value.line == HEAD.count("\n") + 4


def test_two_devices():
    text = program("k.run(a, buf0, 16, stream=stream0)")[0].replace(
        "    return",
        "    with torch.cuda._DeviceGuard(1):\n        torch.cuda.set_device(1)\n    return",
        1,
    )
    with pytest.raises(Refusal, match="a second device"):
        static.plan(text)


def test_two_guards_of_one_device_become_one():
    again = (
        "    with torch.cuda._DeviceGuard(0):\n        torch.cuda.set_device(0)\n"
        "        k.run(buf0, buf0, 16, stream=stream0)\n    return"
    )
    text = program("k.run(a, buf0, 16, stream=stream0)")[0].replace("    return", again, 1)
    found = static.plan(text).text
    assert found.count("_DeviceGuard") == 1 and found.count("k.run") == 2


def test_unknown_arguments_are_refused():
    text = program("k.run(a, buf0, 16, stream=stream0)")[0]
    with pytest.raises(Refusal, match="does not say what its arguments are like"):
        static.plan(text[: text.index("def get_args")])
    with pytest.raises(Refusal, match="get_args does not make a"):
        static.plan(text.replace("    a = rand", "    b = rand"))
    with pytest.raises(Refusal, match="argument of an unknown form"):
        static.plan(text.replace("rand_strided((16", "mystery((16"))


def test_wrong_shapes_are_refused():
    line = "assert_size_stride(buf0, (17, ), (1, ), 'op')"
    text, last = program("k.run(a, buf0, 16, stream=stream0)", line)
    with pytest.raises(Refusal, match="shapes give") as e:
        static.plan(text)
    assert e.value.line == last


def test_a_cpu_program_is_not_one():
    text = "def call(args):\n    a, = args\n    args.clear()\n    return (a, )\n"
    with pytest.raises(Refusal, match="not a CUDA program"):
        static.plan(text)
    text = program()[0].replace("with torch.cuda._DeviceGuard(0):", "if True:")
    with pytest.raises(Refusal, match="control flow"):
        split(text)


def test_interpreted():
    """With triton at hand the real kernels run, in its interpreter: in a process of its own."""
    import importlib.util
    import subprocess
    import sys

    if importlib.util.find_spec("triton") is None:
        pytest.skip("no triton")
    names = ["branches_inference", "user_kernel_inference", "in_place_inference", "conv_backward"]
    command = [sys.executable, os.path.join(HERE, "interpreted.py"), *names]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("5 runs, bitwise equal") == len(names), found.stdout
    assert found.stdout.count("and right") == 3
