"""Memory of this process: what was freed is given back."""

from __future__ import annotations

import subprocess
import sys

_BLOCKS = 5000
_CODE = f"""
import ctypes
from stallscope.tracers.base.memory import own_memory, trim

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
before = own_memory()
blocks = [libc.malloc(4096) for _ in range({_BLOCKS})]
for block in blocks:
    ctypes.memset(block, 1, 4096)
full = own_memory()
# glibc keeps what was freed below something that is still in use.
for block in (block for i, block in enumerate(blocks) if i % 100):
    libc.free(block)
kept = own_memory()
trim()
print(full - before, kept - before, own_memory() - before)
"""


def test_memory_comes_and_goes() -> None:
    result = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    full, kept, trimmed = map(int, result.stdout.split())
    assert full >= _BLOCKS * 4096
    assert kept >= full // 2
    assert trimmed <= full // 4
