"""SystemTap's modules for guests, compiled on the host as a user would: in a guest that takes minutes.

For kernels whose suite has a compiler and a SystemTap of its own these are used, also for the loading of the module.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import guest
import image
import plan
import standin_driver
import userland
from headers import build_folder
from image import ImageError
from kernels import Kernel
from stallscope.tracers.engines.stap.compiling import find_stap

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "build" / "workloads"
PRODUCER = str(WORKLOADS / "slow_producer")
CALLS = "^(make|take)_item$"
"""The functions that are timed: they wait for 150 ms."""
_SMALLEST = 1 << 20
_LIBRARIES = ("/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6")

_HAND_OUT = """\
mkdir -p /usr/local/bin "/lib/modules/$(uname -r)"
ln -sfn {build} "/lib/modules/$(uname -r)/build"
rm -f /usr/local/bin/stap
cat >/usr/local/bin/stap <<'END'
#!/bin/sh
[ "$1" = --version ] && exec echo 'Systemtap translator/driver (version {version})'
while [ "$1" != -m ]; do shift; done
cp {module} "$2.ko"
END
chmod +x /usr/local/bin/stap
"""
"""A stap that gives out what the host's has compiled of the same scripts: an option of this engine would choose it."""
_TAKE = """\
(
	cd {userland}/usr || exit
	mount --bind lib/debug /usr/lib/debug
	cp -d --remove-destination lib/x86_64-linux-gnu/*.so* /usr/lib/x86_64-linux-gnu/
	cp --remove-destination lib/systemtap/stapio /usr/lib/systemtap/
	cp --remove-destination bin/staprun /usr/bin/
)
"""
"""Copies: SystemTap sees a file's path below the layer of an overlay that it is in."""


@dataclass(frozen=True)
class Module:
    """A command, and the files of build/workloads that it traces there."""

    command: str
    files: tuple[str, ...]
    options: tuple[str, ...] = ()


MODULES = {
    "stap": Module(
        "wall",
        ("slow_producer", "shares", "libshares.so", "futex_pingpong", "cpp_frames", *standin_driver.PROGRAM),
    ),
    "stap_ioctl": Module("ioctl", ("ioctls",)),
    "stap_wakeup": Module("wakeup", ("slow_producer",)),
    "stap_cuda": Module("cuda", ("slow_producer",), ("--lib", PRODUCER, "--sym", CALLS)),
}
OF_AUTO = ("auto_stap", "auto_perf")
OF_WALL = ("stap_clock", "stap_storm", "stap_deep", "stap_killed", "stap_waits", "nvidia_stap", *OF_AUTO)
OF_CHECKS = {**{name: name for name in MODULES}, **dict.fromkeys(OF_WALL, "stap")}
"""Module that each check loads."""


_INDENT = "#     "
"""Begin of the line of the command in a script's first lines."""


@dataclass(frozen=True)
class Plain:
    """A script by itself: the workload that it traces, and its own arguments."""

    workload: tuple[str | int, ...]
    arguments: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


_ITEMS = ("slow_producer", 20, 150_000)
PLAIN = {
    "offcpu": Plain(_ITEMS),
    "oncpu": Plain(("shares", 8_000), ("199",), ("libshares.so",)),
    "ioctl": Plain(("ioctls", "held", 2, 5, 100_000)),
    "wakeup": Plain(_ITEMS),
    "cuda": Plain(_ITEMS, (PRODUCER, "*_item")),
}


def module_of(kernel: str, check: str) -> Path:
    """Path of the module of a check."""
    return ROOT / "build" / "vm" / f"{OF_CHECKS[check]}-{kernel}.ko"


def make(kernel: Kernel, check: str) -> None:
    """Compiles the module of a check. ImageError with what was said."""
    module, file = MODULES[OF_CHECKS[check]], module_of(kernel.name, check)
    own = userland.root(kernel) if kernel.name in plan.WITH_OWN_SYSTEMTAP else None
    build = userland.build_folder(own) if own else build_folder(kernel)
    # SystemTap 5.1 and newer looks for it below /boot alone.
    symbols = own / "boot" / f"System.map-{build.name.removeprefix('linux-headers-')}" if own else build / "System.map"
    if module.command == "cuda" and not symbols.exists():
        _write_symbols(kernel, symbols)
    file.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    words = ["--engine", "stap", "-a", *module.options, "--stap-compile-only", str(file)]
    words += [f"--stap-symbols={each}" for each in (*(WORKLOADS / name for name in module.files), *_LIBRARIES)]
    if own:
        words += ["--stap-build", f"/{build.relative_to(own)}"]
        command = userland.command(own, module.command, words)
    else:
        command = [str(ROOT / f".venv/bin/trace-{module.command}"), *words, "--stap-build", str(build)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ImageError(f"no SystemTap module for {kernel.name}: {done.stderr.strip()}")


def usage(script: str) -> list[str]:
    """The words of the command in a script's first lines, up to the script's name."""
    lines = [line for line in (ROOT / "stap" / f"{script}.stp").read_text().splitlines() if line.startswith(_INDENT)]
    words = shlex.split(" ".join(line.removeprefix(_INDENT).removesuffix("\\") for line in lines))
    return words[: words.index(f"stap/{script}.stp") + 1]


def plain_module(kernel: str, script: str) -> Path:
    """Path of the module of a script by itself."""
    return ROOT / "build" / "vm" / f"plain_{script}-{kernel}" / f"plain_{script}.ko"


def make_plain(kernel: Kernel) -> None:
    """Compiles each script by the command in its first lines, with the files of its workload. ImageError."""
    build = build_folder(kernel)
    if not (symbols := build / "System.map").exists():
        _write_symbols(kernel, symbols)  # cuda.stp needs them
    for script, plain in PLAIN.items():
        command, *flags, file = usage(script)
        flags = flags[: flags.index("-d")]
        own = (WORKLOADS / str(name) for name in (plain.workload[0], *plain.libraries))
        tables = [word for each in (*own, *_LIBRARIES[:1]) for word in ("-d", str(each))]
        module = plain_module(kernel.name, script)
        module.parent.mkdir(parents=True, exist_ok=True)
        module.unlink(missing_ok=True)
        words = [command, *flags, "-p4", "-m", module.stem, "-r", str(build), *tables, file]
        words = [word.replace("stap/", f"{ROOT}/stap/") if word.startswith("stap/") else word for word in words]
        done = subprocess.run([*words, *plain.arguments], capture_output=True, text=True, cwd=module.parent)
        if done.returncode or not module.exists():
            raise ImageError(f"{script}.stp: {done.stderr.strip()[-500:]}")


def preparation(kernel: Kernel, check: str) -> str:
    """Commands of a guest before the check, in shell: the suite's staprun, and its C library, take the place of ours.

    Where ``auto`` is to come to the engine stap by itself, a stap and a build folder are there.
    """
    if check in OF_AUTO:
        paths = {"build": build_folder(kernel), "module": module_of(kernel.name, check)}
        return _HAND_OUT.format(version=find_stap().version, **{what: shlex.quote(str(p)) for what, p in paths.items()})
    if kernel.name not in plan.WITH_OWN_SYSTEMTAP or check not in OF_CHECKS:
        return ""
    return _TAKE.format(userland=shlex.quote(str(userland.root(kernel))))


def _write_symbols(kernel: Kernel, file: Path) -> None:
    """The symbols that the kernel tells: those in its package are a stub. ImageError if it tells none."""
    with tempfile.TemporaryDirectory() as folder:
        keep = Path(folder) / "share"
        job = "grep -v '\\[' /proc/kallsyms >/run/share/symbols\n"
        outcome = guest.run(image.build(kernel), job, folder=ROOT, keep=keep)
        symbols = keep / "symbols"
        if outcome.status or not symbols.exists() or symbols.stat().st_size < _SMALLEST:
            raise ImageError(f"{kernel.name} does not tell its symbols: {outcome.log[-300:]}")
        aside = file.with_suffix(".new")
        aside.write_bytes(symbols.read_bytes())
        aside.rename(file)
