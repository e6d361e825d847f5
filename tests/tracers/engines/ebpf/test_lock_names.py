"""Names of locks."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from runner import FOLDER
from stallscope.converters.model.locks import KERNEL, OTHER_LOCKS, PROCESS, SHARED
from stallscope.tracers.engines.ebpf import lock_names as module
from stallscope.tracers.engines.ebpf.lock_names import LockNames
from stallscope.tracers.engines.ebpf.measures.lock_objects import LockObject
from stallscope.tracers.engines.ebpf.measures.protocol import LockRows, SharedWord
from stallscope.tracers.images.files import HOST
from stallscope.tracers.images.maps import Mapping
from stallscope.tracers.symbols.objects import ObjectFile

SYMBOLS = """\
ffffffff81000000 T _stext
ffffffff82000000 D tasklist_lock
ffffffff82000040 d table
ffffffff82008000 B last
ffffffffc0000100 d rtnl_mutex\t[tun]
"""


def names(found: LockRows | None = None, spaces: Any = None, *, addresses: bool = False) -> LockNames:
    capture = SimpleNamespace(spaces=spaces or SimpleNamespace(processes={}))
    return LockNames(cast(Any, capture), found or LockRows(), kernel_addresses=addresses)


def test_locks_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kallsyms").write_text(SYMBOLS)
    monkeypatch.setattr(module, "_KALLSYMS", tmp_path / "kallsyms")
    made = names()
    assert made.name((KERNEL, 0, 0xFFFFFFFF82000000)) == "tasklist_lock"
    assert made.name((KERNEL, 0, 0xFFFFFFFF82000050)) == "table+0x10"
    assert made.name((KERNEL, 0, 0xFFFFFFFF82007000)) == "#1"  # too far behind it
    assert made.name((KERNEL, 0, 0xFFFF888000001000)) == "#2"
    assert made.name((KERNEL, 0, 0xFFFFFFFF82007000)) == "#1"
    assert names(addresses=True).name((KERNEL, 0, 0xFFFF888000001000)) == "0xffff888000001000"


def test_locks_of_the_kernel_in_allocated_memory() -> None:
    found = LockObject(1, 0, 0, 0, (0, 0), False, 0, 0, False, "kmalloc-2k")
    made = names(LockRows(objects={0xFFFF888000001000: found, 0xFFFF888000002000: found._replace(part=1, tgid=7)}))
    assert made.name((KERNEL, 0, 0xFFFF888000001000), "mutex") == "in kmalloc-2k #1"
    assert made.name((KERNEL, 0, 0xFFFF888000002000), "rwsem") == "mm_struct.mmap_lock"


def test_hidden_addresses_name_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kallsyms").write_text("0000000000000000 D tasklist_lock\n")
    monkeypatch.setattr(module, "_KALLSYMS", tmp_path / "kallsyms")
    assert names().name((KERNEL, 0, 0xFFFFFFFF82000000)) == "#1"


def test_shared_memory() -> None:
    words = [SharedWord(1, 2, 64, "/dev/shm/x"), SharedWord(1, 3, 0, "/dev/zero"), SharedWord(1, 4, 8, "/SYSV0001")]
    made = names(LockRows(numbers={word: i for i, word in enumerate(words, 1)}))
    assert [made.name((SHARED, 0, number)) for number in (1, 2, 3)] == [
        "/dev/shm/x+0x40",
        "[shared memory]+0x0",
        "[shared memory]+0x8",
    ]


def test_variable_of_a_program() -> None:
    """`lock_table` of the workload, as if its code were mapped somewhere."""
    program = FOLDER / "mutexes"
    status = program.stat()
    file = ObjectFile(Mapping(0, 0, 0, str(program), 1, 1), HOST, os.open(program, os.O_RDONLY), status.st_mtime_ns)
    elf = file.elf()
    assert elf is not None
    code = next(s for s in elf.segments if s.type == 1 and s.flags & 1)
    base = 0x7F0000000000
    mapping = Mapping(base + code.vaddr, base + code.vaddr + code.memsz, code.offset, str(program), 1, 1)
    process = SimpleNamespace(space=[mapping])
    spaces = SimpleNamespace(processes={7: process}, object_of=lambda each: file if each is mapping else None)
    data = next(s for s in elf.segments if s.type == 1 and s.flags & 2)
    made = names(spaces=spaces)
    begin, end = data.vaddr, data.vaddr + data.memsz
    found = {made.name((PROCESS, 7, base + vaddr)) for vaddr in [*range(begin, begin + 8192, 8), end - 8]}
    assert {"lock_table", "lock_table+0x40"} <= found
    assert made.name((PROCESS, 7, base + data.vaddr + data.memsz + 64)).startswith("0x7f")
    assert made.name((PROCESS, 8, 0x5000)) == "0x5000"
    assert made.name((PROCESS, 8, 0)) == OTHER_LOCKS
    file.close()
