"""Splitting: every kind of statement, text verbatim; everything else refused with its line."""

import pytest
from peakproof.errors import Refusal
from peakproof.split import split

HEAD = """# AOT ID: ['3_forward']
async_compile = AsyncCompile()
kernel = async_compile.cpp_pybinding(['const float*', 'float*', 'const int64_t'], r'''
extern "C" void kernel(const float* in_ptr0, float* out_ptr0, const int64_t ks0) { }
''')
"""


def plain(*lines):
    """A source with a plain `call` whose body is the lines."""
    return HEAD + "def call(args):\n" + "".join(f"    {line}\n" for line in lines)


def runner(*lines):
    body = "".join(f"        {line}\n" for line in lines)
    return HEAD + "class Runner:\n    def call(self, args):\n" + body + "call = Runner().call\n"


KINDS = [
    ("a, b = args", "unpack"),
    ("args.clear()", "clear"),
    ("s0 = a", "alias"),
    ("a_size = a.size()", "symbol"),
    ("s1 = a_size[0]", "symbol"),
    ("k_xnumel = 4*s1", "symbol"),
    ("assert_size_stride(a, (8, 16), (16, 1), 'in)]put(\"')", "assert"),
    ("assert_alignment(a, 16, \"it's (a, 'b'\")", "assert"),
    ("buf0 = empty_strided_cpu((8, 16), (16, 1), torch.float32)", "allocate"),
    ("buf1 = empty_strided((8, ), (1, ), device='cpu', dtype=torch.int64)", "allocate"),
    ("buf2 = empty_strided_cpu((9, ), (1, ), torch.int8).as_strided((8, ), (1, ))", "allocate"),
    ("kernel(a, buf0, s1)", "node"),
    ("kernel(reinterpret_tensor(a, (4, 32), (32, 1), 0), buf0, s1)", "node"),
    ("extern_kernels.mm(a, b, out=buf0)", "node"),
    ("buf3 = extern_kernels.convolution(a, b, bias=None, stride=(1, 1))", "node"),
    ("buf4 = torch.ops.aten.convolution_backward.default(a, b, a, [16], (1, 1), True)", "node"),
    ("buf5 = buf4[0]", "item"),
    ("buf6 = buf5; del buf5  # reuse", "alias"),
    ("buf7 = reinterpret_tensor(buf6, (4, ), (1, ), 4); del buf6  # reuse", "alias"),
    ("buf8 = aten.view.dtype(buf7, torch.int32)", "alias"),
    ("aten.scatter_reduce_.two(buf0, 1, b, a, reduce='sum', include_self=True)", "node"),
    ("buf0.copy_(b)", "node"),
    ("b = copy_if_misaligned(b)", "node"),
    ("del a", "free"),
    ("del b, buf0", "free"),
    ("buf3 = None", "free"),
    ("return (buf8, reinterpret_tensor(buf7, (2, ), (1, ), 0), )", "return"),
]


@pytest.mark.parametrize("make", [plain, runner])
def test_kinds(make):
    source = split(make(*(line for line, _ in KINDS)))
    by_line = {}
    for s in source.statements:
        by_line.setdefault(s.line, s)
    found = [s for _, s in sorted(by_line.items())]
    assert [s.kind for s in found] == [kind for _, kind in KINDS]
    for s, (line, _) in zip(found, KINDS):
        assert line.startswith(s.text) and source.text.split("\n")[s.line - 1].strip() == line
    assert source.method == (make is runner)
    assert source.arguments == ("a", "b")
    assert source.aot_id == "3_forward"
    assert source.kernels["kernel"].types == ["const float*", "float*", "const int64_t"]


def test_comments_travel():
    source = split(plain("args.clear()", "# one", "# two", "kernel(x, y, 1)", "return ()"))
    assert source.statements[1].comments == ("# one", "# two")


def test_several_lines_and_utf8():
    source = split(
        plain(
            "args.clear()",
            "# größer",
            "assert_size_stride(x, (1, ),",
            "      (1, ), '''größe",
            "  (''')",
            "return ()",
        ).replace("args.clear()", "x, = args; args.clear()")
    )
    assert (
        source.statements[2].text
        == "assert_size_stride(x, (1, ),\n          (1, ), '''größe\n      (''')"
    )


REFUSED = [
    ("if a.item(): pass", "control flow"),
    ("while True: pass", "control flow"),
    ("for i in range(3): kernel(a, b, i)", "control flow"),
    ("with torch.cuda._DeviceGuard(0): pass", "device guard"),
    ("u0 = buf0.item()", "method of a tensor"),
    ("buf1 = alloc_from_pool(pool0, 0, torch.float32, (4, ), (1, ))", "pool"),
    ("(b0, b1) = subgraph_0(args)", "several names"),
    ("buf1[0] = 3", "assignment of an unknown form"),
    ("x = y = 3", "assignment of an unknown form"),
    ("x: int = 3", "unknown statement"),
    ("x += 1", "unknown statement"),
    ("import os", "unknown statement"),
    ("global x", "unknown statement"),
    ("def f(): pass", "unknown statement"),
    ("lambda: 0", "not a call"),
    ("'text'", "not a call"),
    ("buf1 = [t for t in args]", "assignment of an unknown form"),
    ("kernel(f(a), a, 1)", "argument of an unknown form"),
    ("kernel(*a)", "argument of an unknown form"),
    ("kernel((lambda: a)(), a, 1)", "argument of an unknown form"),
    ("kernel((x := a), a, 1)", "argument of an unknown form"),
    ("self.partitions[0](a)", "call of an unknown form"),
    ("buf0.resize_(3)", "method of a tensor"),
    ("try:\n        kernel(a, a, 1)\n    finally: pass", "unknown statement"),
    ("args = [a]", "bound again"),
]


@pytest.mark.parametrize("line, says", REFUSED)
def test_refused_with_line(line, says):
    text = plain("a, = args", "args.clear()", "buf0 = empty_strided_cpu((), (), torch.int8)", line)
    text += "    return (a, )\n"
    with pytest.raises(Refusal, match=says) as caught:
        split(text)
    if "bound again" not in says:
        assert caught.value.line == HEAD.count("\n") + 5


@pytest.mark.parametrize(
    "text",
    [
        "def call(args:\n",
        "x = 1\n",
        HEAD + "def call(args):\n    args.clear()\n",
        HEAD + "def call(args):\n    return ()\n    args.clear()\n",
        HEAD + "def call(a, b):\n    return ()\n",
        plain("b = kernel(b, b, 1)", "a, = args", "args.clear()", "return (a, )"),
        plain("a, a = args", "args.clear()", "return (a, )"),
        plain("t = f(x)", "y = t[0]", "kernel(t, y, 1)", "return (y, )"),
    ],
)
def test_refused_as_a_whole(text):
    with pytest.raises(Refusal):
        split(text)
