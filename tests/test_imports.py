"""Imports that modules may have: no converter a tracer, no circles, and nothing heavy to start."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest
from test_layout import ROOMS, ROOT, command_module, console_scripts

HEAVY = {"networkx", "numpy", "capstone", "google", "rich", "elftools", "cxxfilt"}


def imported_names(source: str, package: str) -> set[str]:
    """Absolute dotted names of all that `source`, a module in `package`, imports, by statement or by importlib."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            origin = ".".join(filter(None, (base, node.module)))
            names |= {f"{origin}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "import_module",
            "__import__",
        ):
            names |= {
                leaf.value.lstrip(".")
                for argument in [*node.args, *(keyword.value for keyword in node.keywords)]
                for leaf in ast.walk(argument)
                if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
            }
    return names


def reaches_tracers(names: set[str]) -> set[str]:
    return {name for name in names if "tracers" in name.split(".")[:2]}


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("import stallscope.tracers.kernel", "stallscope.converters"),
        ("from stallscope.tracers import offcpu", "stallscope.converters"),
        ("from stallscope import tracers", "stallscope.converters"),
        ("from .. import tracers", "stallscope.converters"),
        ("def f():\n    from ..tracers.kernel import libbpf", "stallscope.converters"),
        ("from ...tracers import offcpu", "stallscope.converters.writers"),
        ("import importlib\nimportlib.import_module('stallscope.tracers.offcpu')", "stallscope.converters"),
        ("from importlib import import_module\nimport_module('..tracers', __package__)", "stallscope.converters"),
        ("__import__('stallscope.' + 'tracers')", "stallscope.converters"),
    ],
)
def test_import_of_tracers_is_seen(source: str, package: str) -> None:
    assert reaches_tracers(imported_names(source, package))


@pytest.mark.parametrize("source", ["from ..model import Frame", "import tracersuite", "x = 'tracers'"])
def test_other_imports_are_not(source: str) -> None:
    assert not reaches_tracers(imported_names(source, "stallscope.converters.writers"))


def test_converters_never_import_tracers() -> None:
    sources = sorted((ROOT / "converters").rglob("*.py"))
    assert sources
    for path in sources:
        package = ".".join(("stallscope", *path.parent.relative_to(ROOT).parts))
        assert not reaches_tracers(imported_names(path.read_text(), package)), path


def module_name(path: Path) -> str:
    """``converters.readers.perf.script`` of a path relative to the root; a package of its ``__init__.py``."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imports(*rooms: str) -> dict[str, set[str]]:
    """Module to the modules of the same rooms that it imports: anywhere in it, for types only, and by a registry."""
    paths = {module_name(path.relative_to(ROOT)): path for room in rooms for path in (ROOT / room).rglob("*.py")}
    found = {}
    for name, path in paths.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        source = path.read_text()
        names = {text.removeprefix("stallscope.") for text in imported_names(source, f"stallscope.{package}")}
        names |= {relative(text, package) for text in registered(source)}
        # What is imported is a module, or something in one.
        known = {text if text in paths else text.rpartition(".")[0] for text in names}
        found[name] = (known & paths.keys()) - {name}
    return found


def relative(text: str, package: str) -> str:
    """``..x.y`` or ``x.y``, as a registry in ``package`` names it."""
    up = len(text) - len(text.lstrip("."))
    return ".".join([*package.split(".")[: len(package.split(".")) - max(up - 1, 0)], text.lstrip(".")])


def registered(source: str) -> set[str]:
    """Strings of a module that imports by name: some of them are names of modules."""
    if "import_module(" not in source:
        return set()
    leaves = (leaf for leaf in ast.walk(ast.parse(source)) if isinstance(leaf, ast.Constant))
    return {leaf.value for leaf in leaves if isinstance(leaf.value, str) and leaf.value.replace(".", "").isidentifier()}


def by_package(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Imports between folders. That a folder is inside another one is no import."""
    home = {name: name if (ROOT / Path(*name.split("."))).is_dir() else name.rpartition(".")[0] for name in graph}
    packages: dict[str, set[str]] = {package: set() for package in home.values()}
    for name, targets in graph.items():
        packages[home[name]] |= {home[target] for target in targets} - {home[name]}
    return packages


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Names of which each is imported by the next, the last one being the first; [] when there are none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["b", "c"]),
        ({"a": set(), "b": {"a", "d"}, "c": {"b"}, "d": {"c"}}, ["b", "c", "d"]),
    ],
)
def test_a_circle_is_found(graph: dict[str, set[str]], found: list[str]) -> None:
    assert sorted({*circle(graph)}) == found


def test_what_a_registry_names_is_an_import() -> None:
    assert "converters.readers.perf.script" in imports("converters")["converters.readers.registry"]
    assert "converters.writers.svg.writer" in imports("converters")["converters.writers.registry"]
    found = imports("tracers")
    assert "tracers.engines.ebpf.engine" in found["tracers.command.engines"]
    assert "tracers.engines.ebpf.measures.offcpu" in found["tracers.engines.ebpf.measures.registry"]


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circle(imports(*ROOMS)) == []


def test_no_two_packages_import_each_other() -> None:
    assert circle(by_package(imports(*ROOMS))) == []


@pytest.mark.parametrize("command", console_scripts())
def test_command_starts_without_heavy_imports(command: str) -> None:
    module = command_module(command)
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY & set(loaded) == set()
    assert "click" in loaded


UNUSED_BEFORE_PROBES = {
    "tracers.base": {"conditions", "group_limits", "listeners", "neighbours", "origins", "pressure", "socket_tables"},
    "tracers.engines.ebpf": {"assemble", "costing", "intervals", "locks", "metering", "objects", "session", "shedding"},
    "tracers.engines.ebpf.measures": {"calls", "events", "ioctl", "locks", "oncpu", "slices", "steps", "timeline"},
    "converters": {"facts", "phrases", "readers", "rules", "summary", "transforms"},
    "converters.scan": {"page", "report", "screen", "slicing"},
}
"""Modules that no trace needs before its probes are attached, by folder: measures that are not chosen, what follows
processes while it runs, and what makes its report."""
UNUSED = {
    "tracers.base": {"listeners", "networks", "socket_lookup", "socket_tables", "unix_peers"},
    "tracers.engines.ebpf": {"assemble", "event_peers", "intervals", "locks", "metering", "objects", "shedding"},
    "tracers.engines.ebpf.measures": UNUSED_BEFORE_PROBES["tracers.engines.ebpf.measures"],
    "tracers.kernel": {"run_times"},
    "converters": UNUSED_BEFORE_PROBES["converters"],
    "converters.scan": UNUSED_BEFORE_PROBES["converters.scan"],
}
"""Modules that a trace needs when it runs, if it is cut into intervals, has a budget or waits for something; or at its
end."""


def dotted(names: dict[str, set[str]]) -> set[str]:
    return {f"stallscope.{folder}.{name}" for folder, inside in names.items() for name in inside}


@pytest.mark.parametrize("command", ["offcpu", "scan"])
@pytest.mark.parametrize(("last", "unused"), [("engine", UNUSED_BEFORE_PROBES), ("session", UNUSED)])
def test_a_trace_begins_without_what_it_does_not_need(command: str, last: str, unused: dict[str, set[str]]) -> None:
    engine = f"stallscope.tracers.engines.ebpf.{last}"
    made = "from stallscope.tracers.measures.offcpu import OffCpu; registry.collectors([OffCpu()])"
    code = (
        f"import sys, stallscope.tracers.{command}, {engine}; "
        f"from stallscope.tracers.engines.ebpf.measures import registry; {made}; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "stallscope.tracers.engines.ebpf.measures.offcpu" in loaded
    assert dotted(unused) & set(loaded) == set()


def test_what_a_trace_does_not_need_exists() -> None:
    names = {
        name.removeprefix("stallscope.").replace(".", "/") for name in dotted(UNUSED) | dotted(UNUSED_BEFORE_PROBES)
    }
    assert [name for name in sorted(names) if not (ROOT / name).is_dir() and not (ROOT / f"{name}.py").is_file()] == []


def test_the_answer_needs_no_heavy_imports_that_a_profile_does_not() -> None:
    code = (
        "import sys, stallscope.converters.summary.summarize; print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY & set(loaded) == set()
