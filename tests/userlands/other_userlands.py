"""``make userland-test``: build, tests, demo and wheel in other releases of Debian, the wheel in releases of Ubuntu.

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
_RESULTS = _ROOT / "build" / "userlands"
_SOURCE = "src/stallscope"
"""Folder of the tree in the other userland."""
_SPEEDSCOPE = Path("build/npm/node_modules/speedscope")
_KEYRINGS = Path("/usr/share/keyrings")
_MAX_AGE_DAYS = 7.0
_STEP_LIMIT = 1800.0
"""Seconds after which a step is ended."""
_TOLD = 15
"""Lines of the log that are shown of a step that failed."""

_PYTEST_ARGS = "-q tests/converters tests/tracers tests/scripts tests/test_*.py"
_VERSIONS = """
echo "clang $(clang -dumpversion), gcc $(gcc -dumpfullversion), libbpf $(.venv/bin/python -c '
from stallscope.tracers.kernel import libbpf
print(libbpf.version().removeprefix("v"))'), $(.venv/bin/python --version), $(getconf GNU_LIBC_VERSION)"
"""
_TRACE = """
cd /tmp
rm -f sleep.folded
wheel/bin/trace-offcpu -o sleep.folded -- sleep 1
awk '/nanosleep/ { sum += $NF } END { print sum, "microseconds in nanosleep"; exit sum < 1000000 }' sleep.folded
"""
_ALONE = f"""
show='${{db:Status-Status}} ${{Package}}\\n'
packages=$(dpkg-query --show --showformat="$show" 'libbpf*' 'libelf*' | awk '$1 == "installed" {{ print $2 }}')
[[ -z $packages ]] || dpkg --purge --force-depends $packages
if ldconfig -p | grep -E 'lib(bpf|elf)'; then exit 1; fi
/opt/wheel/bin/trace-doctor | grep 'libbpf: .* carried by the wheel'
{_TRACE}"""


class Failure(Exception):
    """Failure that ends all: the cause, and what helps."""


class Step(NamedTuple):
    name: str
    command: str
    """Command for bash, in the source tree."""
    told: str = ""
    """A regular expression: what of the output is told of a step that succeeded."""


BUILD_STEPS = (
    Step("make build", f"make build && {_VERSIONS}", r"clang .*glibc .*"),
    Step("make test", f"make test PYTEST_ARGS='{_PYTEST_ARGS}'", r"\d+ passed.*|SKIPPED .*"),
    Step("make demo", "make demo && grep -q cudaGetDeviceProperties build/demo/demo.svg"),
    Step("make wheel", "make wheel"),
)
"""Steps of a build: when the first one fails, there is nothing that the others could show."""

WHEEL_STEPS = (
    Step("pip install", "python3 -m venv /opt/wheel && /opt/wheel/bin/pip install --quiet dist/stallscope-*.whl"),
    Step("trace-offcpu --help", "/opt/wheel/bin/trace-offcpu --help"),
    Step("trace-doctor", "/opt/wheel/bin/trace-doctor", r"ok +(libbpf|BPF programs): .*"),
    Step("trace-offcpu", _TRACE, r"\d+ microseconds in nanosleep"),
    Step("without libbpf", _ALONE, r"ok +libbpf: .*|\d+ microseconds in nanosleep"),
)
STEPS = BUILD_STEPS + WHEEL_STEPS


class System(NamedTuple):
    """System whose releases they are, and what is done in them."""

    origin: str
    """Name by which the archive calls itself."""
    keyring: str
    options: tuple[str, ...]
    """Options for debootstrap."""
    steps: tuple[Step, ...]


DEBIAN = System("Debian", "debian-archive-keyring.gpg", ("--include=make",), STEPS)
UBUNTU = System(
    "Ubuntu",
    "ubuntu-archive-keyring.gpg",
    ("--components=main,universe", "--include=python3-venv,ca-certificates"),
    WHEEL_STEPS,
)
_OF_UBUNTU = ("jammy", "noble")
"""Releases of Ubuntu. They get the wheel of this tree (`make wheel`), which has to run where it was not built."""


def fail(cause: str, remedy: str) -> NoReturn:
    raise Failure(f"{cause}\n{remedy}")


def mirror_of(targets: str, name: str) -> str:
    """The archive of Debian or Ubuntu in the host's apt sources; ``targets`` is what `host_mirror` asks apt for."""
    for origin, label, uri in (line.split("|") for line in targets.splitlines()):
        if (origin, label) == (name, name):
            return uri
    fail(
        f"the apt sources of this host name no archive of {name} that apt-get update has read",
        "run apt-get update; on another system name one: make userland-test USERLAND_MIRROR=URI",
    )


def host_mirror(name: str) -> str:
    command = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)"]
    return mirror_of(subprocess.run(command, capture_output=True, text=True, check=True).stdout, name)


def remove(path: Path) -> None:
    """A folder as a whole, but never what is mounted in it."""
    subprocess.run(["rm", "-rf", "--one-file-system", "--", str(path)], check=True)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and its group."""
    for number, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def run(command: list[str], log: IO[bytes]) -> int:
    """Runs a command; returns its exit status, 124 after `_STEP_LIMIT`."""
    process = subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
    try:
        return process.wait(_STEP_LIMIT)
    except subprocess.TimeoutExpired:
        log.write(f"ended after {_STEP_LIMIT:g} s\n".encode())
        return 124
    finally:
        end(process)


def end_processes_in(root: Path) -> None:
    """Ends what still runs there: it would hold its mounts."""
    there = root.stat()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.path.samestat(there, (folder / "root").stat()):
                os.kill(int(folder.name), signal.SIGKILL)


class Userland:
    """One release: what is kept of it in ``cache``, and a fresh copy to work in."""

    def __init__(self, suite: str, cache: Path) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", suite):
            fail(f"{suite!r} is no name of a release", "name some, as in make userland-test USERLANDS='sid'")
        self.suite = suite
        self.system = UBUNTU if suite in _OF_UBUNTU else DEBIAN
        self.cache = cache
        self.base = cache / "base"
        self.root = cache / "root"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        with (self.cache / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fail(f"another run uses {self.cache}", "wait for its end")
            yield

    def age_days(self) -> float:
        """Age of what is kept; infinite when there is nothing."""
        try:
            return (time.time() - self.base.stat().st_mtime) / 86400
        except FileNotFoundError:
            return float("inf")

    def bootstrap(self, mirror: str, log: IO[bytes]) -> int:
        """Makes what is kept, anew; packages are checked against the archive's signed index. Exit status."""
        new = self.cache / "base.new"
        remove(new)
        for folder in ("archives", "pip"):  # they would grow and grow
            remove(self.cache / folder)
            (self.cache / folder).mkdir()
        keyring = _KEYRINGS / self.system.keyring
        if not keyring.exists():
            fail(f"{keyring} is missing", "install ubuntu-keyring (Debian 13 and newer have it)")
        options = ["--variant=minbase", *self.system.options, f"--cache-dir={self.cache / 'archives'}"]
        options += [f"--keyring={keyring}", "--force-check-gpg"]
        status = run(["unshare", "--mount", "debootstrap", *options, self.suite, str(new), mirror], log)
        if status == 0:
            # No package may start a service here.
            policy = new / "usr/sbin/policy-rc.d"
            policy.write_text("#!/bin/sh\nexit 101\n")
            policy.chmod(0o755)
            remove(self.base)
            new.rename(self.base)
            os.utime(self.base)
        return status

    def copy(self) -> None:
        """A fresh copy, with the files of the tree that git knows, as they stand, or with its wheel."""
        if self.root.exists():  # a run was killed
            end_processes_in(self.root)
        remove(self.root)
        subprocess.run(["cp", "-a", "--", str(self.base), str(self.root)], check=True)
        if self.system is UBUNTU:
            target = self.root / _SOURCE / "dist"
            target.mkdir(parents=True)
            for wheel in (_ROOT / "dist").glob("stallscope-*.whl"):
                shutil.copy2(wheel, target)
            return
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=_ROOT, capture_output=True, check=True).stdout
        for name in filter(None, os.fsdecode(listed).split("\0")):
            if (_ROOT / name).exists():
                target = self.root / _SOURCE / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(_ROOT / name, target, follow_symlinks=False)
        if (_ROOT / _SPEEDSCOPE).is_dir():
            shutil.copytree(_ROOT / _SPEEDSCOPE, self.root / _SOURCE / _SPEEDSCOPE)

    def run(self, command: str, log: IO[bytes]) -> int:
        enter = ["unshare", "--mount", "bash", str(_HERE / "enter.sh"), str(self.root), str(self.cache)]
        try:
            return run([*enter, "bash", "-euc", f"cd /{_SOURCE}\n{command}"], log)
        finally:
            end_processes_in(self.root)


class Report:
    """A line for each step on standard output, everything in a log."""

    def __init__(self, suite: str, log: IO[bytes]) -> None:
        self._suite = suite
        self._log = log
        self.failed: list[str] = []

    @contextlib.contextmanager
    def step(self, step: Step) -> Iterator[list[int]]:
        """Gives a list for the exit status of what the step runs."""
        self._log.write(f"\n== {step.name}\n".encode())
        begin, began = self._log.tell(), time.monotonic()
        statuses: list[int] = []
        yield statuses
        seconds = time.monotonic() - began
        self._log.seek(begin)
        lines = self._log.read().decode(errors="replace").splitlines()
        failed = any(statuses)
        print(f"{self._suite:<8} {step.name:<20} {'FAILED' if failed else 'ok':<6} {seconds:5.0f} s", flush=True)
        if failed:
            self.failed.append(step.name)
        told = lines[-_TOLD:] if failed else [line for line in lines if step.told and re.match(step.told, line)]
        for line in told:
            print(f"{'':<9}{line[:200]}", flush=True)


def check(userland: Userland, mirror: str | None, refresh: bool) -> bool:
    """All steps in one userland; whether they succeeded."""
    results = _RESULTS / userland.suite
    remove(results)
    results.mkdir(parents=True)
    with (_RESULTS / f"{userland.suite}.log").open("w+b", buffering=0) as log, userland.locked():
        report = Report(userland.suite, log)
        if refresh or userland.age_days() > _MAX_AGE_DAYS:
            with report.step(Step("debootstrap", "")) as statuses:
                statuses.append(userland.bootstrap(mirror or host_mirror(userland.system.origin), log))
        if not report.failed:
            try:
                userland.copy()
                run_steps(userland, report, log, results)
            finally:
                remove(userland.root)
    if report.failed:
        print(f"{userland.suite}: failed: {', '.join(report.failed)}; see {log.name}")
    return not report.failed


def run_steps(userland: Userland, report: Report, log: IO[bytes], results: Path) -> None:
    for step in userland.system.steps:
        with report.step(step) as statuses:
            statuses.append(userland.run(step.command, log))
        if step is STEPS[0]:
            if report.failed:
                return
            shutil.copy(userland.root / _SOURCE / "bpf/stallscope.bpf.o", results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="releases: trixie, sid, jammy")
    parser.add_argument("--mirror", metavar="URI", help="the archive; else that of this host's apt sources")
    parser.add_argument(
        "--refresh", action="store_true", help=f"make what is kept anew, as after {_MAX_AGE_DAYS:g} days"
    )
    options = parser.parse_args()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stallscope" / "userlands"
    try:
        if os.geteuid() != 0:
            fail("other userlands need root", "run make userland-test as root, or where there is sudo")
        userlands = [Userland(suite, caches / suite) for suite in options.suites]
        succeeded = [check(userland, options.mirror, options.refresh) for userland in userlands]
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 2
    return 0 if all(succeeded) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # through what ends the processes
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
