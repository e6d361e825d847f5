"""Runs the live tests that trace every interpreter, and writes docs/python-versions.md: `make python-versions`.

    python_versions.py            # all of them: about ten minutes
    python_versions.py --page     # writes the page from the latest run, and runs nothing

`$STALLSCOPE_PYTHONS` names more interpreters (tests/workloads/pythons.py). If there is no 3.14, Debian's is fetched,
from sid.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import debian_python
import pytest
from archive import ArchiveError
from pythons import NEWEST, interpreters
from version_page import TITLES, Interpreter, Result, Run, page

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python-versions.md"
RESULTS = ROOT / "build" / "python-versions.json"
UNPACKED = ROOT / "build" / "python-sid"
VERSION = "version"
"""Property of a test that says itself which version it ran on."""
_ASK = """
import json, platform
print(json.dumps([platform.python_compiler(), "/libpython" in open("/proc/self/maps").read()]))
"""


class Collected:
    """A plugin of pytest: keeps the tests of `TITLES`, and their results."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.untitled: list[str] = []
        self._tests: dict[str, tuple[str, str]] = {}

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        for item in items:
            self._tests[item.nodeid] = name_of(item), version_of(item)
        self.untitled = sorted({name for name, version in self._tests.values() if version and name not in TITLES})
        others = [item for item in items if name_of(item) not in TITLES]
        items[:] = [item for item in items if name_of(item) in TITLES]
        config.hook.pytest_deselected(items=others)
        if self.untitled:
            raise pytest.UsageError(f"tests of versions without a title in version_page.py: {', '.join(self.untitled)}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        test, version = self._tests[report.nodeid]
        told = dict(report.user_properties).get(VERSION, version)
        self.results.append(Result(test, str(told), report.outcome, why(report), report.duration))


def name_of(item: pytest.Item) -> str:
    """``test_gil.py::test_holder``."""
    return f"{item.path.name}::{getattr(item, 'originalname', item.name)}"


def version_of(item: pytest.Item) -> str:
    """The version that the test has as a parameter, or none."""
    parameters = getattr(item, "callspec", None)
    values = parameters.params.values() if parameters else ()
    return next((value for value in values if isinstance(value, str) and value in interpreters()), "")


def why(report: pytest.TestReport) -> str:
    """The first line of a failure, without a folder of the machine."""
    if report.passed:
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    said = crash.message if crash else report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return said.strip().partition("\n")[0].replace(f"{ROOT}/", "")


def described(version: str, command: tuple[str, ...]) -> Interpreter:
    said = subprocess.run([*command, "-c", _ASK], capture_output=True, text=True, check=True, timeout=60).stdout
    compiler, is_shared = json.loads(said)
    return Interpreter(version, compiler, is_shared, source_of(command))


def source_of(command: tuple[str, ...]) -> str:
    """Source of an interpreter, in words, without a folder of the machine."""
    program = Path(command[-1])
    if program.is_relative_to(UNPACKED):
        return f"Debian {debian_python.SUITE}, with its own C library"
    if ".pyenv" in program.parts:
        return "pyenv"
    if program.is_relative_to("/usr/bin"):
        release = platform.freedesktop_os_release()
        return f"{release['ID'].title()} {release.get('VERSION_ID', '')}".strip()
    return "a folder of its own"


def named_newest() -> None:
    """Adds Debian's interpreter to `$STALLSCOPE_PYTHONS` if there is none of the newest version."""
    newest = ".".join(map(str, NEWEST))
    if not any(version.startswith(f"{newest}.") for version in interpreters()):
        print(f"no Python {newest}: fetching Debian's, from {debian_python.SUITE}", flush=True)
        named = os.environ.get("STALLSCOPE_PYTHONS", "")
        os.environ["STALLSCOPE_PYTHONS"] = f"{named};{debian_python.unpacked(UNPACKED)}"
        interpreters.cache_clear()


def commit() -> str:
    """State of the sources, but for the page; with a `+` if it is none of git's."""

    def git(*words: str) -> str:
        command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    changed = git("status", "--porcelain", "--", ":/", f":!{PAGE.relative_to(ROOT)}")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def run_all() -> Run:
    before, sources = os.getloadavg()[0], commit()
    collected = Collected()
    status = pytest.main(["-q", "-p", "no:cacheprovider", str(ROOT / "tests" / "live")], plugins=[collected])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        sys.exit(f"no page: pytest ended with {status!r}")
    found = [described(version, command) for version, command in interpreters().items()]
    load = round(before, 1), round(os.getloadavg()[0], 1)
    date = time.strftime("%-d %B %Y", time.gmtime())
    cores = len(os.sched_getaffinity(0))
    py_spy = metadata.version("py-spy")
    return Run(date, sources, platform.release(), cores, load, py_spy, found, collected.results)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the live tests on each version of Python.")
    parser.add_argument("--page", action="store_true", help="only write the page, from the latest run")
    if not parser.parse_args().page:
        # Of the traced programs, none needs what this one imports.
        os.environ.pop("PYTHONPATH", None)
        os.environ["REQUIRE_LIVE"] = "1"
        try:
            named_newest()
        except (ArchiveError, subprocess.CalledProcessError) as error:
            sys.exit(f"no Python {'.'.join(map(str, NEWEST))}: {error}\nname one in STALLSCOPE_PYTHONS")
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(asdict(run_all()), indent=1))
    if not RESULTS.exists():
        sys.exit("no run yet: call it without --page")
    run = Run.of(json.loads(RESULTS.read_text()))
    PAGE.write_text(page(run))
    failed = [result for result in run.results if result.outcome != "passed"]
    print(f"{PAGE.relative_to(ROOT)}: {len(run.results)} tests, {len(failed)} of them not passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
