"""Matches in files that are compiled for it. Nothing is attached."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from matching import match_of
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.command.target_list import check, check_mapped, lines
from stallscope.tracers.probe_targets.targets import Target, Targets

SOURCE = """
namespace shop {
__attribute__((noinline)) int price(int x) { return x + 1; }
__attribute__((noinline)) int price(long x) { return x + 2; }
}
extern "C" {
__attribute__((naked)) int pushed() { __asm__("push %rbx; pop %rbx; ret"); }
__attribute__((naked)) int stepped() { __asm__("lea 1(%rdi), %eax; ret"); }
int _setjmp(void *x) { return x != 0; }
}
"""


@pytest.fixture
def library(require: Callable[[bool, str], None], tmp_path: Path) -> Path:
    compiler = shutil.which("g++")
    require(compiler is not None, "there is no g++")
    (tmp_path / "x.cc").write_text(SOURCE)
    path = tmp_path / "libshop.so"
    apart = "-Wl,-Ttext=0x123000"  # addresses are not offsets in the file
    subprocess.run([str(compiler), "-w", "-O1", "-shared", "-fPIC", apart, "-o", path, tmp_path / "x.cc"], check=True)
    return path


def targets(*texts: str, returns: bool = False) -> Targets:
    return Targets.of(map(Target.parse, texts), returns=returns)


def address_of(library: Path, symbol: str) -> int:
    found = subprocess.run(["nm", "-D", library], check=True, capture_output=True, text=True).stdout
    return int(match_of(rf"^([0-9a-f]+) T {symbol}$", found, re.MULTILINE)[1], 16)


def test_what_a_probe_costs(library: Path) -> None:
    file, pushed, stepped, last = lines(targets(f"{library}:*ed"), None, ())
    assert file == str(library)
    assert pushed == f"  {address_of(library, 'pushed'):#014x}  pushed  probe: yes, about 2 µs a call"
    assert stepped == f"  {address_of(library, 'stepped'):#014x}  stepped  probe: yes, about 12 µs a call"
    assert last == (
        "2 functions of 1 file: 2 can have a probe, 1 of them on an instruction that the kernel steps through"
    )


def test_functions_of_cpp(library: Path) -> None:
    _, first, second, last = lines(targets(f"{library}:shop::price"), None, ())
    assert "shop::price(int)  probe: no: an exception could leave it (--cpp)" in first
    assert "shop::price(long)  probe: no:" in second
    assert last == "2 functions of 1 file: 0 can have a probe"
    _, first, second, _ = lines(targets(f"{library}:shop::price", returns=True), None, ())
    assert "shop::price(int)  probe: yes" in first
    assert "shop::price(long)  probe: yes" in second


def test_functions_that_return_twice(library: Path) -> None:
    _, line, _ = lines(targets(f"{library}:_setjmp", returns=True), None, ())
    assert line.endswith("_setjmp  probe: no: its return must not be watched")


def test_nothing_matches(library: Path) -> None:
    found = lines(targets(f"{library}:pushedd"), None, ())
    assert [next(found), next(found)] == [str(library), "  no function matches: it has pushed"]
    with pytest.raises(StallscopeError, match="no function matches"):
        next(found)
    with pytest.raises(StallscopeError, match="no file of that name"):
        list(lines(targets("libnosuch.so.9:f"), None, ()))


def test_of_a_process(library: Path) -> None:
    """The file's name is looked for in what the process maps."""
    scope = Scope(pids=[os.getpid()])
    with pytest.raises(StallscopeError, match="no file of that name"):
        list(lines(targets("libshop.so:pushed"), scope, ()))
    ctypes.CDLL(str(library))
    file, _, last = lines(targets("libshop.so:pushed"), scope, ())
    assert (file, last) == (str(library), "1 function of 1 file: 1 can have a probe")


def test_of_a_command() -> None:
    file, getenv, _ = lines(targets("libc.so.6:getenv"), None, ("sh",))
    assert "/libc" in file
    assert "  getenv" in getenv
    assert "  probe: " in getenv


def test_what_a_file_has_not(library: Path, tmp_path: Path) -> None:
    check(targets(f"{library}:pushed", "libnosuch.so.9:f"))
    with pytest.raises(StallscopeError, match=r"has no function for '.*:pushedd'") as caught:
        check(targets(f"{library}:pushedd"))
    assert (caught.value.remedy, caught.value.exit_code) == ("it has pushed", 2)
    with pytest.raises(StallscopeError, match=r"return of shop::price\(int\) could end the program") as caught:
        check(targets(f"{library}:shop::*"))
    assert "--cpp" in caught.value.remedy
    check(targets(f"{library}:shop::*", returns=True))
    with pytest.raises(StallscopeError, match="return of _setjmp could end") as caught:
        check(targets(f"{library}:_setjmp", returns=True))
    assert "--cpp" not in caught.value.remedy
    (tmp_path / "text").write_text("x" * 1000)
    with pytest.raises(StallscopeError, match="not an ELF file"):
        check(targets(f"{tmp_path}/text:f"))


def test_a_mapped_file_without_the_function(library: Path) -> None:
    """The cause is told before the trace; but no file that may come later is waited for in vain."""
    mapped, me = ctypes.CDLL(str(library)), Scope([os.getpid()])
    assert mapped
    check_mapped(targets("libshop.so:pushed", "libnothing.so:f", "nothing:f"), me, ())
    with pytest.raises(StallscopeError, match=r"libshop\.so has no function for 'libshop\.so:pushd'\n") as caught:
        check_mapped(targets("libshop.so:pushed", "libshop.so:pushd"), me, ())
    assert (caught.value.exit_code, caught.value.remedy) == (2, "it has pushed")
    with pytest.raises(StallscopeError, match="could end the program"):
        check_mapped(targets("libshop.so:shop::price"), me, ())
    with pytest.raises(StallscopeError, match=r"no function for 'libc\.so\.6:nosuch_at_all'"):
        check_mapped(targets("libc.so.6:nosuch_at_all"), Scope(), (sys.executable,))
    check_mapped(targets("libshop.so:pushd"), Scope(), (sys.executable,))


def test_one_of_several_mapped_files_is_enough(library: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / library.name
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-o", other, "-"], input=b"int more(void) {return 1;}", check=True
    )
    mapped = [ctypes.CDLL(str(each)) for each in (library, other)]
    assert len(mapped) == 2
    check_mapped(targets("libshop.so:more", "libshop.so:pushed"), Scope([os.getpid()]), ())


def test_a_stripped_file_says_so(library: Path) -> None:
    subprocess.run(["strip", library], check=True)
    with pytest.raises(
        StallscopeError, match="it is stripped, so that it has no names but those that it exports"
    ) as caught:
        check(targets(f"{library}:pushedd"))
    assert caught.value.remedy == "it has pushed; one that is not stripped has the names of all"
