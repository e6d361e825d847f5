"""Libraries that ld.so loads, compared with what it says itself (ldd(1) asks it)."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.images import needed as module
from stallscope.tracers.images.needed import needed

Compile = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path, gcc: str) -> Compile:
    """``build(name, *flags, source=…)``: a library (lib….so) or a program, in the folder that ``name`` says."""

    def made(name: str, *flags: str, source: str = "") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        library = path.name.startswith("lib")
        (tmp_path / "code.c").write_text(source or ("int f(void) { return 1; }" if library else "int main() {}"))
        kind = ["-shared", "-fPIC", f"-Wl,-soname,{path.name}"] if library else []
        # As an application might: libraries whose functions nobody calls count, too.
        command = [gcc, "-Wl,--no-as-needed", *kind, "-o", str(path), str(tmp_path / "code.c"), *flags]
        subprocess.run(command, check=True, capture_output=True)
        return path

    return made


def loaded(path: Path | str, environ: dict[str, str]) -> set[str]:
    """Real paths that ld.so would map, as it says itself, and the program."""
    done = subprocess.run(["ldd", str(path)], env={**os.environ, **environ}, capture_output=True, text=True)
    assert "not found" not in done.stdout, done.stdout
    found = re.findall(r"(?:=> |^\s+)(/\S+) \(0x", done.stdout, re.MULTILINE)
    return {os.path.realpath(each) for each in (*found, path)}


@pytest.mark.parametrize("name", ["sh", "ls", "gdb", "clang", "perf", "python3", "gcc", "systemctl"])
def test_programs_of_this_machine(name: str, require: Callable[[bool, str], None]) -> None:
    path = shutil.which(name, path="/usr/bin:/bin")
    if path is None and name not in ("sh", "ls"):
        return  # another machine has other programs
    assert path is not None
    found = needed(path, {})
    assert len(found) == len(set(found))
    assert set(found) >= loaded(path, {})
    assert all(os.path.isabs(each) and not os.path.islink(each) for each in found)
    # Beyond what ld.so chooses there may be variants for other processors only.
    assert all("glibc-hwcaps" in each for each in set(found) - loaded(path, {}))


def test_rpath_is_for_what_libraries_need_too(build: Compile, tmp_path: Path) -> None:
    inner = build("deep/libinner.so")
    outer = build("lib/libouter.so", str(inner))
    flags = [str(outer), f"-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib:{tmp_path}/deep"]
    program = build("bin/program", *flags)
    assert set(needed(str(program), {})) == loaded(program, {})
    assert str(inner) in needed(str(program), {})


def test_libraries_that_a_program_may_open(build: Compile, tmp_path: Path) -> None:
    """Names of libraries are searched for as the program's own are, with what they need."""
    inner = build("deep/libinner.so")
    opened = build("lib/libopened.so", str(inner), f"-Wl,-rpath,{tmp_path}/deep")
    elsewhere = build("other/libelsewhere.so")
    program = build("bin/program", "-Wl,-rpath,$ORIGIN/../lib")
    usual = needed(str(program), {})
    found = needed(str(program), {}, also=("libopened.so", str(elsewhere), "libnone.so", "/no/lib.so"))
    assert set(found) - set(usual) == {str(opened), str(inner), str(elsewhere)}


def test_rpath_is_not_for_a_library_with_a_runpath(build: Compile, tmp_path: Path) -> None:
    inner = build("deep/libinner.so")
    outer = build("lib/libouter.so", str(inner), "-Wl,--enable-new-dtags,-rpath,/nowhere")
    program = build("program", str(outer), f"-Wl,--disable-new-dtags,-rpath,{tmp_path}/lib:{tmp_path}/deep")
    assert str(outer) in needed(str(program), {})
    assert str(inner) not in needed(str(program), {})


def test_runpath_is_for_the_file_itself(build: Compile, tmp_path: Path) -> None:
    inner = build("lib/libinner.so")
    outer = build("lib/libouter.so", str(inner), "-Wl,--enable-new-dtags,-rpath,${ORIGIN}")
    program = build("bin/program", str(outer), "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../lib")
    assert set(needed(str(program), {})) == loaded(program, {})
    assert str(inner) in needed(str(program), {})
    other = build("lib/libouter.so", str(inner), "-Wl,--enable-new-dtags,-rpath,/nowhere")
    found = needed(str(program), {})
    assert str(other) in found
    assert str(inner) not in found, "the program's runpath is not for what its libraries need"


@pytest.mark.parametrize(("tags", "wins"), [("--disable-new-dtags", "own"), ("--enable-new-dtags", "given")])
def test_what_comes_before_ld_library_path(build: Compile, tmp_path: Path, tags: str, wins: str) -> None:
    build("given/libinner.so")
    own = build("own/libinner.so")
    program = build("program", str(own), f"-Wl,{tags},-rpath,{tmp_path}/own")
    environ = {"LD_LIBRARY_PATH": f"/nowhere:{tmp_path}/given"}
    assert set(needed(str(program), environ)) == loaded(program, environ)
    assert f"{tmp_path}/{wins}/libinner.so" in needed(str(program), environ)
    assert str(own) in needed(str(program), {})


def test_links_are_resolved_and_origin_is_where_a_library_was_found(build: Compile, tmp_path: Path) -> None:
    build("here/libinner.so")
    inner = build("there/libinner.so", source="int g(void) { return 2; }")
    outer = build("real/libouter.so", str(inner), "-Wl,--enable-new-dtags,-rpath,$ORIGIN")
    (tmp_path / "here/libouter.so").symlink_to(outer)
    program = build("real/program", str(outer), f"-Wl,-rpath,{tmp_path}/here")
    (tmp_path / "link").symlink_to(program)
    found = needed(str(tmp_path / "link"), {})
    assert set(found) == loaded(program, {})
    assert str(tmp_path / "here/libinner.so") in found
    assert str(inner) not in found


def test_preloaded_libraries(build: Compile) -> None:
    library = build("libearly.so")
    environ = {"LD_PRELOAD": f"{library} libm.so.6"}
    assert set(needed("/bin/true", environ)) == loaded("/bin/true", environ)
    assert str(library) in needed("/bin/true", environ)


def test_a_library_of_another_kind_is_passed_over(build: Compile, tmp_path: Path) -> None:
    right = build("right/libinner.so")
    wrong = tmp_path / "wrong" / "libinner.so"
    wrong.parent.mkdir()
    image = bytearray(right.read_bytes())
    image[18:20] = struct.pack("<H", 183)  # e_machine: EM_AARCH64
    wrong.write_bytes(image)
    program = build("program", str(right), f"-Wl,-rpath,{tmp_path}/wrong:{tmp_path}/right")
    found = needed(str(program), {})
    assert str(right) in found
    assert str(wrong) not in found


def test_variants_for_processors_are_all_taken(build: Compile, tmp_path: Path) -> None:
    plain = build("lib/libinner.so")
    special = build("lib/glibc-hwcaps/x86-64-v2/libinner.so")
    program = build("program", str(plain), f"-Wl,-rpath,{tmp_path}/lib")
    assert {str(plain), str(special)} <= set(needed(str(program), {}))


def test_static_program_needs_nobody(build: Compile, tmp_path: Path) -> None:
    program = build("program", "-static", "-nostdlib", "-Wl,-e,main")
    assert needed(str(program), {"LD_PRELOAD": "/lib/x86_64-linux-gnu/libm.so.6"}) == [str(program)]


def test_modules_of_pythons_standard_library() -> None:
    python = "/usr/bin/python3"
    plain, more = needed(python, {}), needed(python, {}, with_modules=True)
    assert set(plain) < set(more)
    extra = [path for path in more if "/lib-dynload/" in path]
    assert any("_ctypes." in path for path in extra)
    assert not any("/lib-dynload/" in path for path in plain)
    assert any("libffi" in path for path in more), "what modules need comes with them"
    assert needed("/bin/true", {}, with_modules=True) == needed("/bin/true", {})


def test_what_is_no_program(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    os.mkfifo(tmp_path / "pipe")
    for path in (script, tmp_path / "pipe", tmp_path, tmp_path / "missing", "/dev/zero", "\0", ""):
        assert needed(str(path), {}) == []


def test_damaged_files_do_no_harm(build: Compile, tmp_path: Path) -> None:
    """Each byte of the headers and of the dynamic section, and cuts at many lengths."""
    program = build("program", "-lm")
    image = program.read_bytes()
    dynamic = int(
        subprocess.check_output(["readelf", "-lW", str(program)], text=True).split("DYNAMIC")[1].split()[0], 16
    )
    places = [*range(0, 1024, 3), *range(dynamic, dynamic + 512, 3)]
    damaged = tmp_path / "damaged"
    for i, at in enumerate(places):
        content = bytearray(image)
        content[at] = (255, 0, 128, content[at] ^ 1)[i % 4]
        damaged.write_bytes(content)
        needed(str(damaged), {})
    for size in range(0, len(image), 997):
        damaged.write_bytes(image[:size])
        needed(str(damaged), {})


def test_a_circle_ends(build: Compile, tmp_path: Path) -> None:
    first = build("liba.so")
    second = build("libb.so", str(first))
    build("liba.so", str(second))
    program = build("program", str(first), f"-Wl,-rpath,{tmp_path}", f"-Wl,-rpath-link,{tmp_path}")
    assert {str(first), str(second)} <= set(needed(str(program), {"LD_LIBRARY_PATH": str(tmp_path)}))


@pytest.mark.parametrize(
    "content",
    [b"", b"glibc-ld.so.cache1.1", b"x" * 100, module._CACHE_HEAD.pack(module._CACHE_MAGIC, 1 << 31, 0) + bytes(100)],
)
def test_damaged_cache_of_the_linker(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_bytes(content)
    monkeypatch.setattr(module, "_CACHE", str(tmp_path / "cache"))
    found = needed(sys.executable, {})
    assert any("libc.so" in path for path in found), "default folders are searched all the same"


def test_libraries_by_the_cache_of_the_linker(build: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file made by ldconfig(8), behind one of the old form."""
    library = build("strange/libstrange.so")
    program = build("program", str(library))
    made = tmp_path / "cache"
    command = ["/sbin/ldconfig", "-X", "-C", str(made), str(tmp_path / "strange")]
    (tmp_path / "conf").write_text("")
    subprocess.run([*command, "-f", str(tmp_path / "conf")], check=True, capture_output=True)
    assert str(library) not in needed(str(program), {})
    for prefix in (b"", b"ld.so-1.7.0\0" + struct.pack("<I", 0)):
        made.write_bytes(prefix + made.read_bytes())
        monkeypatch.setattr(module, "_CACHE", str(made))
        assert str(library) in needed(str(program), {})
