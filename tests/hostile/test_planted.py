"""Programs and modules that somebody else has put where a command may look for its own: root runs none of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attackers import Attacker
from neighbours import Neighbour
from watching import command_path, watch

pytestmark = pytest.mark.usefixtures("hostile")

_MODULES = ("json", "typing", "subprocess", "sitecustomize", "usercustomize", "struct", "numpy", "capstone", "bcc")
_PROGRAMS = (
    "addr2line", "llvm-symbolizer", "perf", "eu-stack", "dot", "gcc", "cc", "clang", "python3", "python", "stap",
    "staprun", "modprobe", "modinfo", "gdb", "nm", "c++filt", "debuginfod-find", "uname", "id", "sh", "mount", "ps",
)  # fmt: skip
_COMMANDS: dict[str, tuple[str, ...]] = {
    "list": ("trace-func", "libc.so.6:malloc*", "--list"),
    "func": ("trace-func", "libc.so.6:malloc_trim"),
    "lines": ("trace-offcpu", "--lines"),
    "perf": ("trace-wall", "--engine", "perf"),
    "bcc": ("trace-wall", "--engine", "bcc"),
    "eu-stack": ("trace-wall", "--engine", "eu-stack"),
    "question": ("trace-func", "libc.so.6:malloc_trim(size_t pad)", "--over", "1ms"),
    "doctor": ("trace-doctor",),
    "prepare": ("trace-doctor", "--prepare"),
}
_FOLDERS = (
    "TMPDIR",
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "PYTHONPYCACHEPREFIX",
    "PYTHONPATH",
    "PYTHONUSERBASE",
)
_OTHERS = {
    "DEBUGINFOD_URLS": "http://127.0.0.1:9/",
    "BROWSER": "planted",
    "PAGER": "planted",
    "PYTHONSTARTUP": "json.py",
    "PYTHONINSPECT": "1",
    "PYTHONHASHSEED": "0",
}


def _plant(attacker: Attacker) -> Path:
    """A file to which everything that runs adds its user and its name."""
    told = attacker.home / "told"
    for name in _MODULES:
        text = f"import os\nwith open({str(told)!r}, 'a') as file:\n    file.write(f'{{os.getuid()}} {name}.py\\n')\n"
        (attacker.home / f"{name}.py").write_text(text)
    programs = attacker.home / "bin"
    programs.mkdir()
    for name in _PROGRAMS:
        path = programs / name
        path.write_text(f'#!/bin/bash\necho "$UID {name}" >>{told}\nexit 1\n')
        path.chmod(0o755)
        (attacker.home / name).symlink_to(path)
    for path in (attacker.home, programs, *attacker.home.iterdir(), *programs.iterdir()):
        os.chown(path, attacker.uid, attacker.uid, follow_symlinks=False)
    return told


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("name", _COMMANDS)
def test_root_runs_nothing_of_a_user(name: str, attacker: Attacker, bystander: Neighbour, outputs: Path) -> None:
    told = _plant(attacker)
    program, *options = _COMMANDS[name]
    target: tuple[object, ...] = ("-p", bystander.process.pid, "-o", outputs / "out.pb.gz")
    if name == "list":
        target = target[:2]
    elif name == "doctor":
        target = ()
    elif name == "prepare":
        target = (bystander.process.pid,)
    environment = {
        "PATH": f".:{attacker.home / 'bin'}:{os.environ['PATH']}",
        **dict.fromkeys(_FOLDERS, str(attacker.home)),
        **_OTHERS,
    }
    outcome = watch(
        command_path(program), *options, *target, patience=60, seconds=0.5, cwd=attacker.home, **environment
    )
    ran = told.read_text().splitlines() if told.exists() else []
    assert [line for line in ran if line.startswith("0 ")] == [], outcome.text[-1000:]
    assert outcome.ended is not None
    assert "Traceback" not in outcome.text
    assert ">>>" not in outcome.text
