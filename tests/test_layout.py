"""The rules of the house that a machine can check: names, rooms, sizes. test_imports.py has what may import what."""

from __future__ import annotations

import ast
import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("converters", "tracers")
MAX_LINES = 400

SHARED_PROBES = {
    "calls": "calls of functions: for trace-cuda, and any library",
    "events": "what trace-func counts",
    "gil": "Python's interpreter lock, for the commands that show waits",
    "locks": "locks, for trace-wakeup",
    "faults": "addresses of page faults, for what waits are on",
    "file_locks": "requests for locks on files that the kernel has refused",
    "retransmissions": "what TCP has sent again on the connections that threads wait on",
    "python_steps": "calls of Python functions, for --step",
    "sched": "the scheduler's events, for every measure",
    "timeline": "the scheduler's events one by one, for the commands that write a timeline",
    "scope": "which threads are traced: every command uses it",
}
"""bpf/*.bpf.c that are not a command's."""

TESTED_ELSEWHERE: dict[str, str] = {
    "tracers/symbols/one.py": "what process.py knows of one: tests/tracers/symbols/test_process.py",
    "converters/model/sites.py": "a tuple without logic",
    "converters/model/collectives.py": "dataclasses without logic",
    "converters/collectives/records.py": "a table without logic",
    "converters/facts/collective_thresholds.py": "numbers: tests/converters/facts/test_thresholds.py",
    "converters/facts/connection_thresholds.py": "numbers: tests/converters/facts/test_thresholds.py",
    "converters/summary/collective_sentences.py": "with the table: tests/converters/summary/test_collectives_table.py",
    "tracers/measures/argument_options.py": "a tuple without logic",
    **dict.fromkeys(
        ("converters/model/display.py", "converters/model/group_limits.py", "converters/model/wait_objects.py"),
        "dataclasses without logic",
    ),
    "tracers/base/addresses.py": "with whole tables: tests/tracers/base/test_socket_tables.py",
    "tracers/base/networks.py": "with real namespaces: tests/live/test_networks.py",
    "tracers/engines/ebpf/faults.py": "a program in the kernel: tests/live/test_wait_objects.py",
    "converters/phrases/doing.py": "with what it tells: tests/converters/rules/test_doing.py",
    "converters/phrases/ends_with.py": "with what it tells: tests/converters/rules/test_ends_with.py",
    "converters/phrases/teams.py": "with what it tells: tests/converters/facts/test_teams.py",
    "converters/phrases/locks.py": "with what it tells: tests/converters/rules/test_holder.py",
    "converters/facts/plumbing.py": "with whole stacks: tests/converters/facts/test_waits.py",
    "converters/facts/wait_kinds.py": "declarations: tests/converters/facts/test_waits.py",
    "converters/model/slices.py": "dataclasses without logic: tests/converters/facts/test_slices.py",
    "converters/base/errors.py": "one exception without logic",
    "converters/model/gpus.py": "dataclasses without logic",
    "converters/pprof/gpus.py": "round trips: tests/converters/pprof/test_encoder.py",
    "tracers/nvml/child.py": "another process: tests/tracers/nvml/test_client.py",
    "converters/model/pressure.py": "dataclasses without logic",
    "converters/model/neighbours.py": "one dataclass without logic",
    "converters/model/gil.py": "dataclasses without logic",
    "converters/pprof/schema.py": "private part of converters/pprof: tests/converters/pprof/test_decoder.py",
    "converters/readers/base/options.py": "one dataclass without logic",
    "converters/summary/call_ioctls.py": "with the sentences: tests/converters/summary/test_call_ioctl_sentence.py",
    "converters/summary/call_time.py": "with the sentences: tests/converters/summary/test_call_ioctl_sentence.py",
    "converters/summary/call_time_table.py": "with the sentences: tests/converters/summary/test_call_ioctl_sentence.py",
    "converters/facts/threshold_types.py": "with the thresholds: tests/converters/facts/test_thresholds.py",
    "converters/entry.py": "declarations: tests/converters/base/test_starting.py",
    "scripts/verdicts_doc.py": "with the page: tests/test_docs.py",
    "tracers/bcc_compiler/child.py": "another process: tests/tracers/bcc_compiler/test_compiler.py",
    "tracers/command/arguments.py": "with a program: tests/live/test_ask.py",
    "tracers/command/asking.py": "with real calls: tests/live/test_ask.py",
    "tracers/command/live_terminal.py": "another process: tests/tracers/command/test_live_screen.py",
    "tracers/dwarf/child.py": "another process: tests/tracers/dwarf/test_reading.py",
    "tracers/holder/child.py": "another process: tests/tracers/holder/test_client.py, tests/hostile/test_locks.py",
    "tracers/engines/ebpf/measures/answers.py": "programs in the kernel: tests/live/test_ask.py",
    "tracers/engines/ebpf/measures/asked_calls.py": "programs in the kernel: tests/live/test_ask.py",
    "tracers/engines/ebpf/measures/asked_events.py": "programs in the kernel: tests/live/test_ask_events.py",
    "tracers/engines/ebpf/measures/replies.py": "what the kernel counted: tests/live/test_ask.py, test_ask_events.py",
    "tracers/engines/ebpf/costing.py": "with real programs: tests/live/test_budget.py",
    "tracers/engines/ebpf/measures/leaving.py": "programs in the kernel: tests/live/test_budget.py",
    "tracers/command/asking_events.py": "with real events: tests/live/test_ask_events.py",
    "tracers/outside/child.py": "another process: tests/tracers/outside/test_reads.py, test_client.py",
    "tracers/expressions/nodes.py": "declarations: tests/tracers/expressions/test_check.py, test_expressions.py",
    "tracers/expressions/syntax.py": "declarations without logic",
    "tracers/command/run.py": "options to request: tests/tracers/test_offcpu.py",
    "tracers/engines/bcc/session.py": "with real programs: tests/live/test_bcc.py",
    "tracers/engines/bcc/tables.py": "maps of the kernel: tests/live/test_bcc.py",
    "tracers/engines/ebpf/capture.py": "declarations, part of the session: tests/tracers/engines/ebpf/test_session.py",
    "tracers/engines/ebpf/newcomers.py": "part of the session: tests/tracers/engines/ebpf/test_session.py",
    "tracers/engines/ebpf/following.py": "part of the session: tests/tracers/engines/ebpf/test_session.py",
    "tracers/engines/ebpf/measures/ioctl_records.py": "part of the measure: test_ioctl.py beside it",
    "tracers/engines/ebpf/measures/lock_records.py": "layouts of the measure: test_locks.py beside it",
    "tracers/engines/limits.py": "numbers",
    "tracers/engines/rows.py": "tuples without logic",
    "tracers/measures/calls.py": "specifications without logic",
    "tracers/measures/events.py": "specifications without logic",
    "tracers/measures/locks.py": "specifications without logic",
    "tracers/measures/questions.py": "declarations without logic",
    "tracers/measures/steps.py": "specifications without logic",
    "tracers/measures/timeline.py": "a specification without logic",
    "tracers/unwind/frames.py": "part of reading code: tests/tracers/unwind/test_prologues.py",
    "tracers/unwind/jumptables.py": "part of reading code: tests/tracers/unwind/test_prologues.py",
    "tracers/entry.py": "declarations: tests/converters/base/test_starting.py",
    "tracers/engines/perf/reading.py": "part of the engine: tests/tracers/engines/perf/test_engine.py",
    "tracers/engines/protocol.py": "declarations without logic",
    "converters/writers/perfetto/context.py": "private part: tests/converters/writers/perfetto/test_writer.py",
    "converters/writers/perfetto/events.py": "private part: tests/converters/writers/perfetto/test_writer.py",
    "converters/readers/registry.py": "a list: tests/converters/readers/test_detect.py, base/test_protocol.py",
    "converters/writers/registry.py": "a list: tests/converters/writers/test_output.py, base/test_protocol.py",
    "converters/writers/pprof.py": "calls converters/pprof: tests/converters/writers/test_output.py",
}
"""Modules without a test file of their own, and why."""

MORE_TESTS = {
    "tests/tracers/kernel/test_own_stacks.py": "of bpf/include/own_stack.bpf.h",
    "tests/tracers/engines/ebpf/measures/test_new_measure.py": "of no module: a measure needs no other one's change",
    "tests/tracers/images/test_forged.py": "of all readers of files: what one that an attacker made may take",
}
"""Test files without a module of their name, and why."""


def read_setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def console_scripts() -> dict[str, tuple[str, str]]:
    """Command to (module, function)."""
    lines = read_setup()["options.entry_points"]["console_scripts"].split("\n")
    scripts = {}
    for line in filter(None, lines):
        command, target = (part.strip() for part in line.split("="))
        module, function = target.split(":")
        scripts[command] = (module, function)
    return scripts


def command_module(command: str) -> str:
    """The module of a command's ``main``, which its console script runs."""
    entry, stem = console_scripts()[command]
    return f"{entry.rpartition('.')[0]}.{stem}"


def modules(*rooms: str) -> list[Path]:
    """Source modules of the rooms, relative to the root, without the `__init__.py`."""
    found = [path.relative_to(ROOT) for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    return [path for path in found if path.name != "__init__.py"]


def mirrored_test(module: Path) -> Path:
    return Path("tests") / module.parent / f"test_{module.name}"


def whole(test: Path, wholes: set[Path]) -> Path | None:
    """The test file of a module of which this one, test_MODULE_PART.py, is a part; None if there is none."""
    return next((each for each in wholes if test.parent == each.parent and test.stem.startswith(f"{each.stem}_")), None)


def test_named_tuples_have_no_other_base() -> None:
    """Python 3.10 does not import a module in which one has: only later versions allow it."""
    wrong = []
    for module in modules(*ROOMS, "scripts"):
        classes = (node for node in ast.walk(ast.parse((ROOT / module).read_text())) if isinstance(node, ast.ClassDef))
        bases = [[ast.unparse(base) for base in node.bases] for node in classes]
        wrong += [(str(module), names) for names in bases if "NamedTuple" in names and len(names) > 1]
    assert wrong == []


@pytest.mark.parametrize("command", console_scripts())
def test_one_stem_names_a_command_everywhere(command: str) -> None:
    entry, function = console_scripts()[command]
    stem = command.removeprefix("trace-").replace("-", "_")
    assert command.startswith("trace-")
    assert entry in {f"stallscope.{room}.entry" for room in ROOMS}
    assert function == stem
    source = Path(*command_module(command).split(".")[1:]).with_suffix(".py")
    assert (ROOT / source).is_file()
    assert f'run("{command_module(command)}")' in (ROOT / source).with_name("entry.py").read_text()
    if (ROOT / "bpf" / f"{stem}.bpf.c").exists():
        assert (ROOT / "docs" / f"{stem}.md").is_file()
        assert (ROOT / mirrored_test(source)).is_file()


@pytest.mark.parametrize(("folder", "suffix"), [("bpf", ".bpf.c"), ("stap", ".stp")])
def test_every_probe_belongs_to_a_command(folder: str, suffix: str) -> None:
    stems = {command.removeprefix("trace-").replace("-", "_") for command in console_scripts()}
    probes = {path.name.removesuffix(suffix) for path in (ROOT / folder).glob(f"*{suffix}")}
    assert probes - stems - set(SHARED_PROBES) == set()


def test_every_module_has_its_test() -> None:
    without = {str(module) for module in modules(*ROOMS, "scripts") if not (ROOT / mirrored_test(module)).is_file()}
    assert without == set(TESTED_ELSEWHERE)


def test_exceptions_are_still_there() -> None:
    assert [path for path in TESTED_ELSEWHERE if not (ROOT / path).is_file()] == []
    assert [stem for stem in SHARED_PROBES if not (ROOT / "bpf" / f"{stem}.bpf.c").is_file()] == []


@pytest.mark.parametrize("room", [*ROOMS, "scripts"])
def test_every_test_file_mirrors_a_module(room: str) -> None:
    tests = {path.relative_to(ROOT) for path in (ROOT / "tests" / room).rglob("test_*.py")}
    assert tests
    mirrored = {mirrored_test(module) for module in modules(room)}
    others = {test for test in tests - mirrored if whole(test, mirrored & tests) is None}
    assert set(map(str, others)) == set(MORE_TESTS) & set(map(str, tests))


@pytest.mark.parametrize(
    ("test", "found"),
    [("a/test_loader_expected.py", True), ("a/test_loaderless.py", False), ("b/test_loader_expected.py", False)],
)
def test_a_part_of_a_test_file_has_its_name(test: str, found: bool) -> None:
    wholes = {Path("a/test_loader.py"), Path("a/test_other.py")}
    assert (whole(Path(test), wholes) == Path("a/test_loader.py")) is found


def test_no_module_is_too_long() -> None:
    lengths = {str(module): (ROOT / module).read_text().count("\n") for module in modules(*ROOMS, "scripts", "tests")}
    assert {module: lines for module, lines in lengths.items() if lines > MAX_LINES} == {}


def test_setup_lists_every_package_folder() -> None:
    setup = read_setup()
    listed = set(filter(None, setup["options"]["packages"].split("\n")))
    homes = dict(re.split(r"\s*=\s*", line) for line in setup["options"]["package_dir"].split("\n") if line)
    rooms = (*ROOMS, "bpf", "stap")
    assert homes == {f"stallscope.{room}": room for room in rooms}
    folders = {path.parent.relative_to(ROOT) for room in rooms for path in (ROOT / room).rglob("*.py")}
    assert listed == {".".join(("stallscope", *folder.parts)) for folder in folders}
    for folder in folders:
        assert (ROOT / folder / "__init__.py").is_file(), folder


@pytest.mark.parametrize(
    "folder",
    [
        ".",
        "bpf",
        "converters",
        "converters/readers",
        "converters/writers",
        "docs",
        "scripts",
        "stap",
        "tests",
        "tests/userlands",
        "tests/workloads",
        "tracers",
    ],
)
def test_folder_explains_itself(folder: str) -> None:
    assert (ROOT / folder / "README.md").read_text().startswith("# ")


@pytest.mark.parametrize("probe", sorted((ROOT / "bpf").rglob("*.[ch]")), ids=lambda path: path.name)
def test_the_kernel_side_says_its_licence(probe: Path) -> None:
    assert probe.read_text().startswith("/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n")


def test_the_licence_is_there_and_named() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()[:200]
    assert read_setup()["metadata"]["license"] == "Apache-2.0"
