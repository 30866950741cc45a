"""Writes c10-2.13.0.tsv with a torch of that release (its CPU wheel will do): settings as libc10
itself reads them. Run: python tests/caching/c10.py > tests/caching/c10-2.13.0.tsv

A line: settings, and "refused" or large_segment_size, max_split_size, max_non_split_rounding_size
(bytes), then roundup_power2_divisions for 2^i MiB, i = 0..15.
"""

import ctypes
import sys

import torch

CONFIG = "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig"
SETTINGS = [
    "",
    "max_split_size_mb:20",
    " max_split_size_mb : 40 ",
    "max_split_size_mb:40,",
    "max_split_size_mb:19",
    "max_non_split_rounding_mb:19",
    "max_non_split_rounding_mb:64",
    "large_segment_size_mb:10",
    "large_segment_size_mb:11",
    "large_segment_size_mb:40",
    "large_segment_size_mb:40,max_split_size_mb:30",
    "max_split_size_mb:30,large_segment_size_mb:40",
    "max_split_size_mb:50,large_segment_size_mb:40",
    "large_segment_size_mb:40,max_non_split_rounding_mb:41",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:3",
    "roundup_power2_divisions:0",
    "roundup_power2_divisions:1",
    "roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]",
    "roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]",
    "roundup_power2_divisions:[64:8,>:0]",
    "roundup_power2_divisions:[>:4]",
    "roundup_power2_divisions:[>:4,16:2]",
    "roundup_power2_divisions:[4:2,16:8]",
    "roundup_power2_divisions:[16:8,4:2]",
    "roundup_power2_divisions:[1048576:8]",
    "roundup_power2_divisions:[3:8]",
    "roundup_power2_divisions:[4:3]",
    "garbage_collection_threshold:0.5",
    "garbage_collection_threshold:0",
    "garbage_collection_threshold:1.0",
    "garbage_collection_threshold:1.2",
    "expandable_segments:True",
    "expandable_segments:true",
    "pinned_use_background_threads:True,max_split_size_mb:32",
    "expandable_segments:True,roundup_power2_divisions:[2:2,>:8],max_split_size_mb:21",
]


def main():
    assert torch.__version__.startswith("2.13.0"), torch.__version__
    lib = ctypes.CDLL(torch.__path__[0] + "/lib/libc10.so")
    divisions = lib[CONFIG + "24roundup_power2_divisionsEm"]
    divisions.argtypes, divisions.restype = [ctypes.c_size_t], ctypes.c_size_t
    instance = lib[CONFIG + "8instanceEv"]
    instance.restype = ctypes.c_void_p
    print("# Written by c10.py with torch", torch.__version__)
    for settings in SETTINGS:
        torch._C._accelerator_setAllocatorSettings("large_segment_size_mb:20")  # it would stay
        try:
            torch._C._accelerator_setAllocatorSettings(settings)
        except (ValueError, RuntimeError):
            print(settings, "refused", sep="\t")
            continue
        # The first three members, as AllocatorConfig.h declares them.
        sizes = list((ctypes.c_uint64 * 3).from_address(instance()))
        sizes = [min(size, (1 << 63) - 1) for size in sizes]
        print(settings, *sizes, *(divisions(1 << i) for i in range(20, 36)), sep="\t")


if __name__ == "__main__":
    sys.exit(main())
