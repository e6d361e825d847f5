"""Names that try to break out of a terminal, a page, a line and a file format stay text in all of them."""

from __future__ import annotations

import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import Finished, Tracer, check_counts, folded, load, run, traced_run
from runner import Workload
from stallscope.converters.base.text import printable
from stallscope.converters.model import Profile
from tracing import Traced

pytestmark = pytest.mark.usefixtures("live")

PROCESS = "<script>alert(1"
SYMBOLS = ('quote"amp&<b>', "semi;colon'</g>")
THREADS = (
    "\x1b[31mred\x1b[0m",
    "line\nbreak;x 99",
    "\u202egnp.exe",
    "\"'`&amp;<!--",
    "\udcff\udcfe bad utf-8",
    "]]></title>\t\\",
)
# The same ones escaped, a number at the end as "*": threads that differ in it only are one name.
SHOWN = (
    "\\x1b[31mred\\x1b[0m",
    "line\\x0abreak;x *",
    "\\u202egnp.exe",
    "\"'`&amp;<!--",
    "\\xff\\xfe bad utf-*",
    "]]></title>\\x09\\",
)
SVG = "{http://www.w3.org/2000/svg}"
FORMATS = ("svg", "folded", "speedscope.json", "pb.gz")
# What our own summary and progress send: colours and attributes, and the clearing of a line.
OWN_SEQUENCE = re.compile(r"\x1b\[[\d;]*m|\r\x1b\[K")


@dataclass
class Hostile:
    finished: Finished
    truth: dict[str, Any]
    pid: int
    folder: Path
    profile: Profile

    def text(self, suffix: str) -> str:
        return (self.folder / f"out.{suffix}").read_text(encoding="utf-8")


def trace_hostile(folder: Path, *arguments: object, **options: Any) -> Hostile:
    outputs = [option for suffix in FORMATS for option in ("-o", folder / f"out.{suffix}")]
    with (
        Workload("hostile", 10, linger=True) as workload,
        Tracer("-p", workload.pid, "--max-block", 90_000, *outputs, *arguments, **options) as tracer,
    ):
        finished, truth = traced_run(workload, tracer)
        return Hostile(finished, truth, workload.pid, folder, load(folder / "out.pb.gz"))


def steering(text: str, allowed: str = "\n") -> list[str]:
    """Characters that a terminal or a page obeys instead of showing them."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in allowed]


def threads_shown(text: str) -> list[str]:
    """Threads of the workload that stand in the text by their names as a person sees them.

    A row names three of its threads; all of them wait equally long, so that it can be any three.
    """
    return [name for name in SHOWN if name in text]


def texts(value: Any) -> Iterable[str]:
    """All strings in a JSON document, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def test_profile_keeps_names_as_they_are(tmp_path: Path) -> None:
    hostile = trace_hostile(tmp_path)
    traced = Traced(hostile.profile, hostile.truth)
    check_counts(traced)
    asleep = traced.samples(SYMBOLS[0]) + traced.samples(SYMBOLS[1])
    assert {sample.label("process") for sample in asleep} == {PROCESS}
    assert {sample.label("thread") for sample in asleep} == set(THREADS)
    assert {times.thread for times in hostile.profile.threads} == {*THREADS, PROCESS}


@pytest.mark.parametrize("per_thread", [False, True])
def test_every_folded_line_is_one(tmp_path: Path, per_thread: bool) -> None:
    hostile = trace_hostile(tmp_path, *(["--per-thread"] if per_thread else []))
    text = hostile.text("folded")
    assert steering(text) == []
    lines = folded(text)
    assert abs(sum(lines.values()) - hostile.profile.total("off-cpu") / 1000) <= 0.5
    roots = {stack.split(";")[0] for stack in lines}
    tids = {str(times.tid) for times in hostile.profile.threads}
    if per_thread:
        assert all(re.search(rf"-{hostile.pid}/(\d+)$", root) for root in roots)
        assert {root.rpartition("/")[2] for root in roots} <= tids
        assert len(roots) >= len(THREADS)
    else:
        assert roots == {f"{PROCESS}-{hostile.pid}"}
    for symbol in SYMBOLS:
        assert any(f";{symbol.replace(';', ':')};" in stack for stack in lines)


def test_svg_has_only_its_own_elements(tmp_path: Path) -> None:
    hostile = trace_hostile(tmp_path, "--per-thread")
    text = hostile.text("svg")
    assert steering(text, "\n\t") == []
    root = ET.fromstring(text)
    clean = tmp_path / "clean.svg"
    run("-o", clean, "--", "sleep", 0.05).check_succeeded()
    own = {element.tag for element in ET.parse(clean).iter()} | {f"{SVG}{name}" for name in ("rect", "text", "tspan")}
    assert {element.tag for element in root.iter()} <= own
    assert len(list(root.iter(f"{SVG}script"))) == len(list(ET.parse(clean).iter(f"{SVG}script")))
    for element in root.iter():
        assert not any(name.lower().startswith("on") or name.lower().endswith("href") for name in element.attrib)
    shown = "".join(root.itertext())
    for name in (*SYMBOLS, *map(printable, THREADS)):
        assert name in shown


def test_speedscope_and_json(tmp_path: Path) -> None:
    hostile = trace_hostile(tmp_path, "--json", "--per-thread")
    document = json.loads(hostile.text("speedscope.json"))
    assert not any(steering(text) for text in texts(document))
    assert {frame["name"] for frame in document["shared"]["frames"]} > set(SYMBOLS)
    names = [profile["name"] for profile in document["profiles"]]
    for thread in THREADS:
        assert any(name.startswith(f"{PROCESS}-{hostile.pid} {printable(thread)}/") for name in names)
    summary = hostile.finished.summary
    assert steering(hostile.finished.out) == []
    assert [process["name"] for process in summary["processes"]] == [PROCESS]
    threads = {who["thread"] for wait in summary["waits"] for who in wait["who"]}
    undecodable = {thread for thread in THREADS if not thread.isascii() and thread.startswith("\udcff")}
    assert set(THREADS) - undecodable <= threads
    # No lone surrogates in JSON: other parsers refuse them.
    assert "\\xff\\xfe bad utf-8" in threads


@pytest.mark.parametrize("columns", [60, 250])
def test_terminal_gets_no_control_character(tmp_path: Path, columns: int) -> None:
    hostile = trace_hostile(tmp_path, columns=columns)
    shown = hostile.finished.tty
    assert "\x1b[1m" in shown  # it took the terminal for one
    assert "\r\x1b[Ktracing " in shown
    plain = OWN_SEQUENCE.sub("", shown)
    assert steering(plain) == []
    assert "\x1b[31mred" not in shown
    assert PROCESS in plain
    if columns == 250:
        assert len(threads_shown(plain)) >= 3


def test_pipe_gets_no_control_character(tmp_path: Path) -> None:
    hostile = trace_hostile(tmp_path)
    assert steering(hostile.finished.out) == []
    assert len(threads_shown(hostile.finished.out)) >= 3
    assert f"{PROCESS} (pid {hostile.pid})" in hostile.finished.out


def test_folded_on_a_terminal(tmp_path: Path) -> None:
    with (
        Workload("hostile", 10, linger=True) as workload,
        Tracer("-p", workload.pid, "-o", "-", "--per-thread", columns=100) as tracer,
    ):
        finished, _ = traced_run(workload, tracer)
    assert steering(OWN_SEQUENCE.sub("", finished.tty)) == []


@pytest.mark.parametrize("name", ["\x1b[31mno.svg", "a\nb.svg", "\u202egnp.svg"])
def test_path_of_an_output(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    finished = run("-o", path, "--", "sleep", 0.05).check_succeeded()
    assert path.exists()
    assert finished.out.splitlines()[-1] == f"wrote {printable(str(path))}"
    cause, _ = run("-o", path, "--", "sleep", 0.05).check_failed()
    assert cause == f"{printable(str(path))} exists"


def test_name_of_the_command(tmp_path: Path) -> None:
    cause, _ = run("-o", "-", "--", "/no/\x1b[31msuch\n").check_failed()
    assert steering(cause) == []
