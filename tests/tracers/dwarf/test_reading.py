"""Parameters and types of functions that were compiled for the test."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from stallscope.tracers.dwarf import child
from stallscope.tracers.dwarf.parameters import Parameters, read_parameters
from stallscope.tracers.expressions.types import Array, Integer, Pointer, Struct, Type, Unreadable

C = """
#include <stddef.h>
enum color { RED, BLUE }; enum sign { MINUS = -1, PLUS };
typedef const struct node node_t;
struct pair { int a, b; };
union either { long number; void *address; };
struct node {
    node_t *next; unsigned flags : 3; short small; char name[12]; int grid[2][3]; double ratio;
    union either either; struct { long inside; union { int left; float right; }; }; struct pair pair; void (*call)(int);
};
#define KEEP __attribute__((noinline, used))
KEEP long plain(char c, unsigned short s, int i, long l, _Bool b, enum color e, long seventh, int eighth)
    { return c + s + i + l + b + e + seventh + eighth; }
KEEP int pointers(node_t *node, const char *text, void **any, enum sign sign) { return node && text && any && sign; }
KEEP int floats(double d, int i, float f, long l) { return d + i + f + l; }
KEEP int by_value(int first, struct pair pair, int behind) { return first + pair.a + behind; }
KEEP struct pair gives(int first) { struct pair p = {first, first}; return p; }
KEEP int wide(__int128 x, int behind) { return x + behind; }
KEEP double real(long double x, int behind) { return x + behind; }
KEEP void nothing(void) { __asm__ volatile(""); }
int main(void) { return 0; }
"""
CPP = """
namespace space {
struct Base { long base; };
struct Request : Base { long size; static int shared; long method(int n); };
__attribute__((noinline)) long Request::method(int n) { return size + n; }
__attribute__((noinline, used)) long reference(const Request &request, const int &number)
    { return request.size + number; }
}
long use(space::Request &r) { return r.method(3); }
int main() { return 0; }
"""
MEMBERS = (
    "next",
    "flags",
    "small",
    "name",
    "grid",
    "ratio",
    "either",
    "number",
    "inside",
    "left",
    "right",
    "pair",
    "b",
    "call",
)


def build(compiler: str, text: str, folder: Path, *flags: str) -> Path:
    source = folder / f"x.{'cc' if compiler == 'g++' else 'c'}"
    source.write_text(text)
    subprocess.run([compiler, "-g", "-O1", *flags, "-o", folder / "x", source], check=True)
    return folder / "x"


def read(path: Path, *members: str) -> dict[str, Parameters]:
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        functions = {
            s.name: s["st_value"] for s in table.iter_symbols() if s["st_info"]["type"] == "STT_FUNC" and s["st_value"]
        }
    fd = os.open(path, os.O_RDONLY)
    try:
        found = read_parameters(fd, list(functions.values()), members)
    finally:
        os.close(fd)
    return dict(zip(functions, found, strict=True))


@pytest.fixture
def compiler(require: Callable[[bool, str], None]) -> None:
    require(bool(shutil.which("gcc") and shutil.which("g++")), "there is no gcc")


def member(struct: Type, *names: str) -> tuple[int, Type]:
    offset = 0
    for name in names:
        assert isinstance(struct, Struct)
        found = struct.members.find(name)
        assert found is not None, name
        offset, struct = offset + found[0], found[1]
    return offset, struct


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
def test_parameters_of_c(tmp_path: Path, version: str) -> None:
    found = read(build("gcc", C, tmp_path, version), *MEMBERS)
    plain = "c: i8, s: u16, i: i32, l: i64, b: u8, e: u32, seventh: i64, eighth: i32"
    assert ", ".join(found["plain"].shown) == plain
    assert found["pointers"].shown[1:] == ("text: str", "any: ptr*", "sign: i32")
    assert found["nothing"].shown == ()
    assert isinstance(found["nothing"].values["retval"].type, Unreadable)
    assert found["plain"].values["retval"].type == Integer(64, True)
    floats = found["floats"].values
    assert isinstance(floats["d"].type, Unreadable)
    assert "arg1" in repr(floats["i"])
    assert "arg2" in repr(floats["l"])
    for name, fine in (("by_value", "first"), ("wide", ""), ("real", "")):
        values = found[name].values
        assert {each for each in values if not isinstance(values[each].type, Unreadable)} - {"retval"} == {fine} - {""}
    assert "struct by value" in found["gives"].fault
    assert found["_start"].fault


@pytest.mark.usefixtures("compiler")
def test_members(tmp_path: Path) -> None:
    node = read(build("gcc", C, tmp_path), *MEMBERS)["pointers"].values["node"].type
    assert isinstance(node, Pointer)
    struct = node.target
    assert struct is not None
    assert isinstance(member(struct, "flags")[1], Unreadable)
    assert isinstance(member(struct, "ratio")[1], Unreadable)
    assert member(struct, "small") == (10, Integer(16, True))
    assert member(struct, "name") == (12, Array(Integer(8, True), 12))
    assert member(struct, "either", "number") == (56, Integer(64, True))
    assert member(struct, "inside") == (64, Integer(64, True))
    assert member(struct, "left") == (72, Integer(32, True))
    assert isinstance(member(struct, "right")[1], Unreadable)
    assert member(struct, "pair", "b") == (84, Integer(32, True))
    _, following = member(struct, "next")
    assert isinstance(following, Pointer)
    assert following.target is struct
    assert isinstance(struct, Struct)
    assert struct.members.find("none") is None


@pytest.mark.usefixtures("compiler")
def test_parameters_of_cpp(tmp_path: Path) -> None:
    found = read(build("g++", CPP, tmp_path), "base", "size", "shared")
    (method,) = [each for name, each in found.items() if "method" in name]
    (reference,) = [each for name, each in found.items() if "reference" in name]
    assert method.shown[0].startswith("this: struct Request*")
    assert method.shown[1] == "n: i32"
    request = reference.values["request"].type
    assert isinstance(request, Pointer)
    assert request.target is not None
    assert member(request.target, "size") == (8, Integer(64, True))
    assert member(request.target, "base") == (0, Integer(64, True))
    assert reference.values["number"].type == Integer(32, True)


@pytest.mark.usefixtures("compiler")
def test_without_debug_information(tmp_path: Path) -> None:
    path = build("gcc", C, tmp_path)
    subprocess.run(["objcopy", "--strip-debug", path], check=True)
    assert {each.fault for each in read(path).values()} == {"it has no debug information"}


@pytest.mark.usefixtures("compiler")
def test_damaged_files(tmp_path: Path) -> None:
    """The answer is there, or one reason, whatever is in the sections."""
    path = build("gcc", C, tmp_path)
    data = path.read_bytes()
    with path.open("rb") as file:
        elf = ELFFile(file)
        places = [(s["sh_offset"], s["sh_size"]) for s in elf.iter_sections() if s.name.startswith(".debug_")]
        address = elf.get_section_by_name(".symtab").get_symbol_by_name("plain")[0]["st_value"]
    rng = random.Random(5)
    outcomes = set()
    for i in range(60):
        broken = bytearray(data)
        for _ in range(1 << rng.randrange(8)):
            offset, size = rng.choice(places)
            broken[offset + rng.randrange(max(size, 1))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        path.write_bytes(broken if i % 5 else broken[: rng.randrange(len(broken))])
        fd = os.open(path, os.O_RDONLY)
        try:
            found = child.read(fd, {"addresses": [address], "members": list(MEMBERS), "seconds": 5})
        finally:
            os.close(fd)
        json.dumps(found)
        outcomes.add("fault" in found)
    assert outcomes == {True, False}


def test_a_process_that_is_killed_is_one_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with open(os.devnull, "rb") as file:
        (found,) = read_parameters(file.fileno(), [1], [])
    assert found.fault == "its debug information cannot be read"


@pytest.mark.usefixtures("compiler")
def test_a_loop_whose_length_the_file_says(tmp_path: Path) -> None:
    """A table of hashes that claims to have four billion of them."""
    path = build("gcc", C, tmp_path)
    data = bytearray(path.read_bytes())
    with open(path, "rb") as file:
        section = ELFFile(file).get_section_by_name(".gnu.hash")
        offset = section["sh_offset"]
    data[offset : offset + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    os.truncate(path, 1 << 36)
    fd = os.open(path, os.O_RDONLY)
    try:
        child.limit_time(0.2)
        found = child.read(fd, {"addresses": [1], "members": [], "seconds": 60})
        assert child.memory(fd) < 512 << 20
    finally:
        child.limit_time(0)
        os.close(fd)
    assert "too long" in found["fault"]
