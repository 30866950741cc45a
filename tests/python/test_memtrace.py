"""memtrace: bytes as requested, whatever threads and forks do."""

import ctypes
import os
import threading

import pytest
from peakproof import meter

if not meter.preloaded():
    pytest.skip("memtrace is not preloaded", allow_module_level=True)

C = ctypes.CDLL(None)
C.aligned_alloc.restype = C.memalign.restype = C.realloc.restype = ctypes.c_void_p
C.aligned_alloc.argtypes = C.memalign.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
C.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
C.free.argtypes = [ctypes.c_void_p]
C.posix_memalign.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_size_t]
L = meter.LIBRARY


def aligned(size, alignment=64):
    block = ctypes.c_void_p()
    assert C.posix_memalign(ctypes.byref(block), alignment, size) == 0
    return block.value


def test_counts_requested_bytes():
    before = L.pp_memtrace_current()
    a, b, c = aligned(1001), C.aligned_alloc(64, 128), C.memalign(4096, 7)
    assert L.pp_memtrace_current() - before == 1001 + 128 + 7
    assert [L.pp_memtrace_size(p) for p in (a, b, c)] == [1001, 128, 7]
    for p in (a, b, c):
        C.free(p)
    assert L.pp_memtrace_current() == before
    assert L.pp_memtrace_size(a) == -1


def test_malloc_is_not_counted():
    C.malloc.restype = ctypes.c_void_p
    before = L.pp_memtrace_current()
    p = C.malloc(12345)
    assert L.pp_memtrace_current() == before
    C.free(p)
    C.free(None)


def test_realloc_keeps_count():
    before = L.pp_memtrace_current()
    p = C.realloc(aligned(100), 1 << 20)
    held = L.pp_memtrace_current() - before
    assert held in (0, 1 << 20)  # counted while its new address can be found
    C.free(p)
    assert L.pp_memtrace_current() == before


def test_intervals():
    outer = L.pp_memtrace_open()
    base = L.pp_memtrace_current()
    C.free(aligned(5000))
    inner = L.pp_memtrace_open()
    C.free(aligned(3000))
    assert L.pp_memtrace_peak(outer) - base == 5000
    assert L.pp_memtrace_peak(inner) - base == 3000
    L.pp_memtrace_reset(outer)
    assert L.pp_memtrace_peak(outer) == L.pp_memtrace_current()
    L.pp_memtrace_close(inner)
    L.pp_memtrace_close(outer)
    opened = [L.pp_memtrace_open() for _ in range(17)]
    assert opened[-1] == -1 and len(set(opened)) == 17
    for i in opened:
        L.pp_memtrace_close(i)


def test_many_blocks():
    before, blocks = L.pp_memtrace_current(), L.pp_memtrace_blocks()
    held = [aligned(1 + i % 97) for i in range(200_000)]
    assert L.pp_memtrace_blocks() - blocks == len(held)
    assert L.pp_memtrace_current() - before == sum(1 + i % 97 for i in range(len(held)))
    for p in held:
        C.free(p)
    assert L.pp_memtrace_current() == before and L.pp_memtrace_lost() == 0


def test_threads():
    before = L.pp_memtrace_current()

    def work(seed):
        held = []
        for i in range(20_000):
            held.append(aligned(64 + (seed * i) % 4096))
            if len(held) > 50:
                C.free(held.pop(seed * i % len(held)))
        for p in held:
            C.free(p)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(1, 9)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert L.pp_memtrace_current() == before and L.pp_memtrace_lost() == 0


def test_fork_while_others_allocate():
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            C.free(aligned(1000))

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(30):
            child = os.fork()
            if child == 0:
                before = L.pp_memtrace_current()
                C.free(aligned(77))
                os._exit(L.pp_memtrace_current() != before)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_tensor_sizes():
    import torch

    m = meter.Memtrace()
    m.start()
    m.begin()
    x = torch.empty(1003, dtype=torch.uint8)
    m.end()
    m.begin()
    y, z = torch.empty(10), torch.empty(20)
    del z
    del x
    m.end()
    first, second = m.stop()
    assert (first.before, first.highest, first.after) == (0, 1003, 1003)
    assert (second.highest, second.after) == (1003 + 120, 40)
    assert m.bytes_of(y.untyped_storage()) == 40
