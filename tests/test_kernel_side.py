"""Rules for the kernel side that a machine can check: files of one purpose, used in one direction."""

from __future__ import annotations

import graphlib
import re
from pathlib import Path

BPF = Path(__file__).resolve().parents[1] / "bpf"
PROBES = sorted(BPF.glob("*.bpf.c"))
HEADERS = sorted((BPF / "include").glob("*.h"))
MAX_LINES = 1000
_INCLUDE = re.compile(r'#include "([\w.]+)"')
_GLOBAL = re.compile(r"^(?:__weak )?(?:int|u64) (\w+)\(", re.MULTILINE)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Names of which each uses the next, the last one being the first; [] when there are none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def uses(sources: dict[str, str]) -> dict[str, set[str]]:
    """Files by the files whose global functions they call."""
    homes = {function: name for name, text in sources.items() for function in _GLOBAL.findall(text)}
    called = {name: set(re.findall(r"\b(\w+)\(", text)) for name, text in sources.items()}
    return {name: {homes[each] for each in found & homes.keys()} - {name} for name, found in called.items()}


def test_a_circle_of_calls_is_found() -> None:
    sources = {"a": "int f(u32 x)\n{\n\treturn g(x);\n}\n", "b": "__weak int g(u32 x)\n{\n\treturn x;\n}\n"}
    assert uses(sources) == {"a": {"b"}, "b": set()}
    assert circle(uses(sources)) == []
    assert set(circle(uses({**sources, "b": sources["b"].replace("return x", "return f(x)")}))) == {"a", "b"}


def test_no_two_probes_call_each_other() -> None:
    found = uses({path.name: path.read_text() for path in PROBES})
    assert "calls.bpf.c" in found["ioctl.bpf.c"]
    assert circle(found) == []


def test_no_header_includes_itself_by_way_of_others() -> None:
    found = {path.name: set(_INCLUDE.findall(path.read_text())) for path in HEADERS}
    assert "open_calls.bpf.h" in found["unwind.bpf.h"]
    assert circle(found) == []


def includes_late(text: str) -> bool:
    """Whether something is included behind the first function."""
    return text.find("\n#include", text.find("\n{")) >= 0


def test_nothing_is_included_behind_code() -> None:
    assert includes_late("int f(void)\n{\n}\n#include <x.h>\n")
    assert [path.name for path in (*PROBES, *HEADERS) if includes_late(path.read_text())] == []


def test_no_file_is_too_long() -> None:
    lengths = {path.name: path.read_text().count("\n") for path in (*PROBES, *HEADERS)}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}
