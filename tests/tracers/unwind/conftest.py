"""Programs with known call frame information, readelf's word on them, and loaders of tables."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mapped_files import Files
from matching import match_of
from stallscope.tracers.images.elf import BytesSource, ElfFile
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.unwind import rows
from stallscope.tracers.unwind.cache import TableCache
from stallscope.tracers.unwind.loader import Loader
from stallscope.tracers.unwind.store import Store

Require = Callable[[bool, str], None]
Build = Callable[..., Path]
Words = list[tuple[int, int]]

_FDE = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=(\S+) pc=([0-9a-f]+)\.\.([0-9a-f]+)")
_NAMES = {"rsp": rows.RSP, "rbp": rows.RBP}


@pytest.fixture(scope="session")
def load() -> Callable[[Path], ElfFile]:
    """Headers of a file."""
    return lambda path: ElfFile(BytesSource(path.read_bytes()))


@pytest.fixture
def build(tmp_path: Path, require: Require) -> Build:
    """``build(source, *flags, suffix=".s")``: a shared library without any start-up code."""
    require(shutil.which("gcc") is not None, "there is no gcc")

    def compiled(source: str, *flags: str, suffix: str = ".s") -> Path:
        code, library = tmp_path / f"code{suffix}", tmp_path / "code.so"
        code.write_text(source)
        command = ["gcc", "-shared", "-fPIC", "-nostdlib", "-o", str(library), str(code), *flags]
        subprocess.run(command, check=True, capture_output=True)
        return library

    return compiled


@pytest.fixture(scope="session")
def readelf(require: Require) -> Callable[[Path], list[tuple[int, int, Words]]]:
    """FDEs of a file as (begin, end, [(pc, word)]); a word is -1 for an expression."""
    require(shutil.which("readelf") is not None, "there is no readelf")

    def read(path: Path) -> list[tuple[int, int, Words]]:
        command = ["readelf", "--debug-dump=frames-interp", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        with process:
            return list(_frames(process.stdout))

    return read


def _frames(lines: Iterator[str]) -> Iterator[tuple[int, int, Words]]:
    frame: tuple[int, int, Words] | None = None
    columns: list[str] = []
    memo: dict[str, int] = {}
    common: dict[str, Words] = {}
    inherited: Words = []
    for line in lines:
        if " FDE " in line or " CIE " in line:
            found = _FDE.match(line)
            if frame:
                yield frame[0], frame[1], frame[2] or [(frame[0], inherited[0][1])]
            if found:
                frame, inherited = (int(found[2], 16), int(found[3], 16), []), common[found[1]]
            else:  # readelf prints nothing for an FDE without instructions: the CIE's row holds
                frame, common[line.split()[0].zfill(8)[-8:]] = None, (inherited := [])
                columns = []
        elif line.lstrip().startswith("LOC"):
            columns, memo = line.split()[1:], {}
        elif columns and "terminator" not in line and line[:1] in "0123456789abcdef":
            pc, _, rest = line.partition(" ")
            if rest not in memo:
                memo[rest] = _word(dict(zip(columns, re.sub(r" \(\w+\)", "", rest).split(), strict=False)))
            (frame[2] if frame else inherited).append((int(pc, 16), memo[rest]))
    if frame:
        yield frame[0], frame[1], frame[2] or [(frame[0], inherited[0][1])]


def _word(cells: dict[str, str]) -> int:  # noqa: PLR0911
    rule, cfa, rbp, ra = rows.RBP_SAME, cells["CFA"], cells.get("rbp", "u"), cells["ra"]
    if ra == "u":
        return rows.pack(rows.END)
    if cfa == "exp" or rbp.endswith("exp"):
        return -1
    if ra != "c-8":
        return rows.pack(rows.UNKNOWN, rows.RA_ELSEWHERE)
    if cells.get("rsp", "u") not in ("u", "v+0"):
        return rows.pack(rows.UNKNOWN, rows.SP_ELSEWHERE)
    name, offset = match_of(r"^(\w+?)([+-]\d+)$", cfa).groups()
    if name not in _NAMES:
        return rows.pack(rows.UNKNOWN, rows.CFA_REGISTER)
    if int(offset) % 8 or not rows.fits_cfa(int(offset) // 8):
        return rows.pack(rows.UNKNOWN, rows.CFA_OFFSET)
    saved = 0
    if rbp.startswith("c"):
        rule, saved = rows.RBP_AT_CFA, int(rbp[1:]) // 8
    elif rbp not in ("u", "s"):
        rule, saved = rows.RBP_UNKNOWN, rows.RBP_ELSEWHERE
    return rows.pack(_NAMES[name] | rule << 4, int(offset) // 8, saved)


@pytest.fixture
def vdso_image(tmp_path: Path) -> Path:
    """File of our own process's vdso."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("[vdso]"):
            begin, end = (int(text, 16) for text in line.split()[0].split("-"))
            image = tmp_path / "vdso.so"
            image.write_bytes(ctypes.string_at(begin, end - begin))
            return image
    raise AssertionError(f"no vdso in process {os.getpid()}")


@pytest.fixture
def files() -> Files:
    """Files that `make_loader` finds."""
    return Files()


@pytest.fixture
def make_loader(loaded: Object, files: Files, tmp_path: Path) -> Iterator[Callable[..., Loader]]:
    """``make_loader(megabytes=64)``: a loader into the kernel's memory."""
    made: list[tuple[Loader, Store]] = []

    def build(megabytes: int = 64) -> Loader:
        store = Store(loaded, megabytes << 20)
        made.append((Loader(store, files, TableCache(str(tmp_path / "cache"))), store))
        return made[-1][0]

    yield build
    for loader, store in made:
        loader.close()
        store.close()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has mapped what it will map."""
    child = subprocess.Popen([shutil.which("cat") or "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin
    assert child.stdout
    child.stdin.write(b"x")
    child.stdin.flush()
    assert child.stdout.read(1) == b"x"
    yield child
    child.kill()
    child.communicate()
