from __future__ import annotations

import ctypes
import mmap
import os

from stallscope.tracers.images.data_maps import find, parse_data_maps, read_data_maps

MAPS = b"""\
00400000-00401000 r-xp 00000000 fe:01 12 /bin/a
00600000-00602000 rw-s 00003000 00:01 77 /memfd:locks (deleted)
7f00000000-7f00001000 rw-p 00000000 00:00 0 [heap]
not a mapping
7f00002000-7f00003000 ---p 00000000 00:00 0\x20
"""


def test_mappings_of_all_kinds() -> None:
    code, shared, heap, none = parse_data_maps(MAPS)
    assert (code.path, code.is_shared) == ("/bin/a", False)
    assert (shared.path, shared.offset, shared.inode, shared.is_shared) == ("/memfd:locks", 0x3000, 77, True)
    assert (heap.path, none.path) == ("[heap]", "")
    assert find([code, shared, heap], 0x601FFF) == shared
    assert find([code, shared, heap], 0x602000) is None
    assert find([code, shared, heap], 0x1000) is None


def test_own_shared_memory_is_found() -> None:
    memory = mmap.mmap(-1, 8192)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    found = find(read_data_maps(os.getpid()), address)
    assert found is not None
    assert (found.is_shared, found.path) == (True, "/dev/zero")
    assert read_data_maps(1 << 22) == []
