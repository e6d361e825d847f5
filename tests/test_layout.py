"""The rules of the house that a machine can check: names, rooms, sizes, what may import what."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("converters", "tracers")
MAX_LINES = 400
HEAVY = {"numpy", "google", "rich", "elftools", "cxxfilt"}

SHARED_PROBES = {"scope": "which threads are traced: every command uses it"}
"""bpf/*.bpf.c that are not a command's."""

TESTED_ELSEWHERE: dict[str, str] = {
    "converters/errors.py": "one exception without logic",
    "converters/pprof_comments.py": "private half of converters/pprof.py: tests/converters/test_pprof.py",
    "converters/pprof_schema.py": "private half of converters/pprof.py: tests/converters/test_pprof.py",
    "converters/readers/options.py": "one dataclass without logic",
    "converters/writers/pprof.py": "calls converters/pprof.py: tests/converters/test_output.py",
}
"""Modules without a test file of their own, and why."""


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


def modules(*rooms: str) -> list[Path]:
    """Source modules of the rooms, relative to the root, without the `__init__.py`."""
    found = [path.relative_to(ROOT) for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]
    return [path for path in found if path.name != "__init__.py"]


def mirrored_test(module: Path) -> Path:
    return Path("tests") / module.parent / f"test_{module.name}"


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
        ("import stallscope.tracers.core", "stallscope.converters"),
        ("from stallscope.tracers import offcpu", "stallscope.converters"),
        ("from stallscope import tracers", "stallscope.converters"),
        ("from .. import tracers", "stallscope.converters"),
        ("def f():\n    from ..tracers.core import libbpf", "stallscope.converters"),
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


@pytest.mark.parametrize("command", console_scripts())
def test_one_stem_names_a_command_everywhere(command: str) -> None:
    module, function = console_scripts()[command]
    stem = command.removeprefix("trace-").replace("-", "_")
    assert command.startswith("trace-")
    assert module in {f"stallscope.{room}.{stem}" for room in ROOMS}
    assert function == "main"
    source = Path(*module.split(".")[1:]).with_suffix(".py")
    assert (ROOT / source).is_file()
    if (ROOT / "bpf" / f"{stem}.bpf.c").exists():
        assert (ROOT / "docs" / f"{stem}.md").is_file()
        assert (ROOT / mirrored_test(source)).is_file()


@pytest.mark.parametrize(("folder", "suffix"), [("bpf", ".bpf.c"), ("stap", ".stp")])
def test_every_probe_belongs_to_a_command(folder: str, suffix: str) -> None:
    stems = {command.removeprefix("trace-").replace("-", "_") for command in console_scripts()}
    probes = {path.name.removesuffix(suffix) for path in (ROOT / folder).glob(f"*{suffix}")}
    assert probes - stems - set(SHARED_PROBES) == set()


@pytest.mark.parametrize("module", modules(*ROOMS, "scripts"), ids=str)
def test_module_has_its_test(module: Path) -> None:
    has_test = (ROOT / mirrored_test(module)).is_file()
    assert has_test != (str(module) in TESTED_ELSEWHERE)


def test_exceptions_are_still_there() -> None:
    assert [path for path in TESTED_ELSEWHERE if not (ROOT / path).is_file()] == []
    assert [stem for stem in SHARED_PROBES if not (ROOT / "bpf" / f"{stem}.bpf.c").is_file()] == []


@pytest.mark.parametrize("room", [*ROOMS, "scripts"])
def test_every_test_file_mirrors_a_module(room: str) -> None:
    tests = [path.relative_to(ROOT) for path in (ROOT / "tests" / room).rglob("test_*.py")]
    assert tests
    assert set(tests) - {mirrored_test(module) for module in modules(room)} == set()


@pytest.mark.parametrize("module", modules(*ROOMS, "scripts", "tests"), ids=str)
def test_module_is_not_too_long(module: Path) -> None:
    limit = 2 * MAX_LINES if module.parts[0] == "tests" else MAX_LINES
    assert (ROOT / module).read_text().count("\n") <= limit


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
    "folder", [".", "bpf", "converters", "docs", "scripts", "stap", "tests", "tests/workloads", "tracers"]
)
def test_folder_explains_itself(folder: str) -> None:
    assert (ROOT / folder / "README.md").read_text().startswith("# ")


@pytest.mark.parametrize("command", console_scripts())
def test_command_starts_without_heavy_imports(command: str) -> None:
    module, _ = console_scripts()[command]
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY & set(loaded) == set()
    assert "click" in loaded
