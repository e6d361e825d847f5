from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stallscope.converters.base import helpers
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.symbols import lines as subject
from stallscope.tracers.symbols.lines import Line, LineTool, _read_json, _read_text

SOURCE = r"""
#include <unistd.h>
static inline __attribute__((always_inline)) int innermost(int x) {
    return write(x, "", 0) + 1;
}
static inline __attribute__((always_inline)) int middle(int x) {
    return innermost(x + 1) * 3;
}
__attribute__((noinline)) int outer(int x) {
    return middle(x) * 2;
}
int main(int argc, char **argv) {
    return outer(argc);
}
"""
TOOLS = ["llvm-symbolizer", "addr2line"]


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LineTool:
    """Each, as if it were the only one."""
    find = helpers.find_program
    assert find(request.param)
    monkeypatch.setattr(
        helpers, "find_program", lambda name: None if name in {*TOOLS} - {request.param} else find(name)
    )
    return LineTool.find()


@pytest.fixture(scope="session")
def inlining(compile_program: Callable[..., Path]) -> Path:
    return compile_program(SOURCE, "-O2", "-g")


@pytest.fixture
def opened(inlining: Path) -> Iterator[int]:
    fd = os.open(inlining, os.O_RDONLY)
    yield fd
    os.close(fd)


def call_in(path: Path, function: str, callee: str) -> int:
    """The address of the last byte of a call: where a return address less one is."""
    code = subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=True).stdout
    (body,) = [part for part in code.split("\n\n") if f"<{function}>:" in part]
    rows = body.splitlines()
    (at,) = [i for i, row in enumerate(rows) if "call" in row and f"<{callee}" in row]
    return int(rows[at + 1].partition(":")[0], 16) - 1


def test_inlined_functions(tool: LineTool, inlining: Path, opened: int) -> None:
    address = call_in(inlining, "outer", "write")
    source = str(inlining.with_suffix(".c"))
    found = tool.look_up(opened, [0x10, address])
    assert found == {address: (Line("innermost", source, 4), Line("middle", source, 7), Line("outer", source, 10))}
    assert tool.problem == ""
    assert tool.look_up(opened, []) == {}


def test_a_separate_debug_file(tool: LineTool, inlining: Path, tmp_path: Path) -> None:
    debug = tmp_path / "d"
    subprocess.run(["objcopy", "--only-keep-debug", inlining, debug], check=True)
    with debug.open("rb") as file:
        debug.unlink()  # by descriptor: a path may lead elsewhere, or nowhere
        address = call_in(inlining, "outer", "write")
        (found,) = tool.look_up(file.fileno(), [address]).values()
    assert [line.function for line in found] == ["innermost", "middle", "outer"]


@pytest.mark.parametrize("content", [b"", b"no ELF", b"\x7fELF\x02\x01\x01" + bytes(200)])
def test_files_that_are_no_programs(tool: LineTool, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with path.open("rb") as file:
        assert tool.look_up(file.fileno(), [0x1000]) == {}


def test_damaged_debug_information(tool: LineTool, inlining: Path, tmp_path: Path) -> None:
    data = bytearray(inlining.read_bytes())
    for name in (".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"):
        listed = subprocess.run(["readelf", "-SW", inlining], capture_output=True, text=True, check=True).stdout
        (row,) = [row.split("]")[1].split() for row in listed.splitlines() if f" {name} " in row]
        offset, size = int(row[3], 16), int(row[4], 16)
        for i in range(0, size, 3):
            data[offset + i] ^= 0xA5
    path = tmp_path / "x"
    path.write_bytes(data)
    with path.open("rb") as file:
        tool.look_up(file.fileno(), [call_in(inlining, "outer", "write")])  # whatever it says, it ends


def test_the_tool_asks_no_server(tool: LineTool, opened: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    class Watched(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            seen.update(options)
            super().__init__(*arguments, **options)

    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    monkeypatch.setattr(subprocess, "Popen", Watched)
    tool.look_up(opened, [0x10])
    assert set(seen["env"]) == {"LC_ALL", "PATH"}
    assert seen["cwd"] == "/"
    assert seen["pass_fds"] == [opened]


def test_without_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "FOLDERS", ())
    with pytest.raises(StallscopeError, match="needs llvm-symbolizer or addr2line") as caught:
        LineTool.find()
    assert "binutils" in caught.value.remedy


def test_an_llvm_symbolizer_without_json_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "llvm-symbolizer"
    old.write_text("#!/bin/sh\necho '??'\necho '??:0:0'\n")
    old.chmod(0o755)
    monkeypatch.setattr(helpers, "FOLDERS", (str(tmp_path), *helpers.FOLDERS))
    assert LineTool.find()._command[0].endswith("addr2line")


def script(folder: Path, text: str) -> LineTool:
    path = folder / "tool"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return LineTool([str(path), "{}"], _read_text)


def test_a_tool_that_dies_keeps_what_it_said(open_path: Path, opened: int) -> None:
    tool = script(open_path, "printf '0x%016x\\nf\\n/a.c:3\\n0x%016x\\ng\\n/b' 16 32; kill -11 $$")
    for _ in range(3):
        assert tool.problem == ""
        assert tool.look_up(opened, [16, 32]) == {16: (Line("f", "/a.c", 3),)}
    assert "ended with status -11" in tool.problem
    assert tool.look_up(opened, [16, 32]) == {}


def test_a_tool_that_does_not_end(open_path: Path, opened: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_SECONDS", 1)
    tool = script(open_path, f"echo $$ >{open_path}/pid; exec sleep 600")
    assert tool.look_up(opened, [16]) == {}
    assert not Path(f"/proc/{(open_path / 'pid').read_text().strip()}").exists()


def test_a_tool_that_writes_without_end(open_path: Path, opened: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_OUTPUT", 1 << 20)
    tool = script(open_path, "exec yes 0x0000000000000010")
    assert tool.look_up(opened, [16]) == {}


def test_limits_hold(open_path: Path, opened: int) -> None:
    tool = script(open_path, f"cat /proc/self/limits >{open_path}/limits")
    tool.look_up(opened, [16])
    limits = {row[:25].strip(): row[25:].split() for row in (open_path / "limits").read_text().splitlines()}
    assert int(limits["Max address space"][0]) == os.fstat(opened).st_size + (4 << 30)
    assert int(limits["Max file size"][0]) <= 256 << 20
    assert limits["Max core file size"][0] == "0"
    assert int(limits["Max cpu time"][0]) <= 120


def test_ctrl_c_only_ends_the_looking_up(open_path: Path, opened: int, ctrl_c: None) -> None:
    tool = script(open_path, f"echo > {open_path}/began; exec sleep 600")

    def interrupt() -> None:
        while not (open_path / "began").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    began = time.monotonic()
    assert tool.look_up(opened, [16]) == {}
    assert time.monotonic() - began < 300
    assert tool.problem == "source lines were looked up no further: interrupted"


def json_line(address: int, *symbols: tuple[str, str, int]) -> str:
    rows = ",".join(f'{{"FunctionName":"{f}","FileName":"{p}","Line":{n},"Column":1}}' for f, p, n in symbols)
    return f'{{"Address":"{address:#x}","ModuleName":"x","Symbol":[{rows}]}}'


@pytest.mark.parametrize(
    "bad",
    [
        "", "x", "{}", "[]", "null", "3", '{"Address":5}', json_line(0x30), '{"Address":"0x20","Symbol":3}',
        '{"Address":"0x20","Symbol":[{}]}', '{"Address":"0x20","Symbol":[null]}', "[" * 100_000,
        '{"Address":"0x20","Symbol":[{"FunctionName":1,"FileName":"","Line":1}]}',
        '{"Address":"0x20","Symbol":[{"FunctionName":"f","FileName":"","Line":"1"}]}',
    ],
)  # fmt: skip
def test_malformed_json_ends_the_answers(bad: str) -> None:
    good = json_line(0x10, ("f", "a.c", 3))
    assert _read_json(iter([good, bad, json_line(0x30, ("g", "", 0))]), [0x10, 0x20, 0x30]) == {
        0x10: (Line("f", "a.c", 3),)
    }


def test_json_of_the_unknown() -> None:
    texts = [
        json_line(1, ("", "", 0)),
        json_line(2, ("??", "??", 0)),
        '{"Address":"0x3","Error":{"Message":"bad"},"ModuleName":"x"}',
        json_line(4, ("f", "", 7)),
        json_line(5, ("", "a.c", -7)),
    ]
    assert _read_json(iter(texts), [1, 2, 3, 4, 5]) == {4: (Line("f", "", 0),), 5: (Line("", "a.c", 0),)}


def test_text_of_the_unknown_and_the_malformed() -> None:
    head = "0x{:016x}".format
    texts = [
        head(1),
        "??",
        "??:0",
        head(2),
        "f",
        "??:?",
        head(3),
        "g",
        "/a:b.c:12 (discriminator 4)",
        head(4),
        "h",
        "x",
    ]
    assert _read_text(iter(texts), [1, 2, 3, 4]) == {2: (Line("f", "", 0),), 3: (Line("g", "/a:b.c", 12),)}
    assert _read_text(iter(texts), [2]) == {}
    assert _read_text(iter([]), [2]) == {}
    assert _read_text(iter([head(1), "f"]), [1]) == {}


def test_names_paths_and_depth_are_bounded() -> None:
    deep = [("f" * 40_000, "p" * 5000, 1)] + [("g", "", 0)] * 100 + [("outermost", "", 0)]
    (found,) = _read_json(iter([json_line(1, *deep)]), [1]).values()
    assert len(found) == subject.MAX_DEPTH
    assert (len(found[0].function), len(found[0].file)) == (1 << 15, 4096)
    assert found[-1].function == "outermost"


def test_it_has_no_rights(open_path: Path, opened: int, root: None) -> None:
    tool = script(open_path, f"cat /proc/self/status >{open_path}/status; readlink /proc/self/ns/net >{open_path}/net")
    tool.look_up(opened, [16])
    status = dict(line.split(":\t") for line in (open_path / "status").read_text().splitlines())
    assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4
    assert status["Groups"].split() == []
    assert [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0] * 5
    assert status["NoNewPrivs"] == "1"
    assert (open_path / "net").read_text().strip() != os.readlink("/proc/self/ns/net")


def test_a_file_that_only_its_owner_may_read(inlining: Path, tool: LineTool, tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_bytes(inlining.read_bytes())
    path.chmod(0o700)
    with path.open("rb") as file:
        found = tool.look_up(file.fileno(), [call_in(inlining, "outer", "write")])
    assert [line.function for (lines) in found.values() for line in lines][-1] == "outer"


def test_a_large_file_that_only_its_owner_may_read(
    tmp_path: Path, tool: LineTool, monkeypatch: pytest.MonkeyPatch, root: None
) -> None:
    monkeypatch.setattr(helpers, "MOST_COPIED", 1 << 20)
    path = tmp_path / "mine"
    path.write_bytes(bytes((1 << 20) + 1))
    path.chmod(0o600)
    with path.open("rb") as file:
        for _ in range(3):
            assert tool.look_up(file.fileno(), [16]) == {}
    assert "only its owner may read it, and it is larger than 1 MB" in tool.problem
