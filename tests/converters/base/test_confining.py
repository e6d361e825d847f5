"""Rights that a process gives up: in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from stallscope.converters.base import confining
from stallscope.converters.base.confining import NOBODY, OURS, Rights, can_become

SETS = "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"


@pytest.fixture
def root(require: Callable[[bool, str], None]) -> None:
    require(os.geteuid() == 0, "this needs root")


def status_of(text: str) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_everything_is_given_up(root: None) -> None:
    code = (
        "import os; from stallscope.converters.base.confining import confine\n"
        "status, net = open('/proc/thread-self/status'), os.readlink('/proc/self/ns/net')\n"
        "confine()\nprint(status.read())\n"
        "for path, how in (('/etc/shadow', os.O_RDONLY), ('/', os.O_TMPFILE | os.O_WRONLY)):\n"
        "    try: os.open(path, how)\n"
        "    except PermissionError: print('refused:\\t' + path)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status = status_of(done.stdout)
    assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4
    assert status["Groups"].split() == []
    assert [int(status[name], 16) for name in SETS] == [0] * 5
    assert status["NoNewPrivs"] == "1"
    assert done.stdout.count("refused:") == 2


def test_an_ordinary_user_gives_up_what_it_can(root: None) -> None:
    code = (
        "import ctypes, os, resource; from stallscope.converters.base.confining import confine\n"
        "status = open('/proc/thread-self/status'); os.setresuid(7, 7, 7); confine(); print(status.read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert status_of(done.stdout)["Uid"].split() == ["7"] * 4
    assert status_of(done.stdout)["NoNewPrivs"] == "1"


def test_a_container_without_these_ids(monkeypatch: pytest.MonkeyPatch, root: None) -> None:
    assert can_become(NOBODY)
    monkeypatch.setattr(confining, "_is_mapped", lambda path, number: number < 100)
    assert not can_become(NOBODY)
    assert can_become(Rights(5, 5))


def test_who_has_ours() -> None:
    assert OURS.are_ours
    assert not NOBODY.are_ours
    assert not Rights(0, 0).are_ours


def test_the_launcher(root: None) -> None:
    """The launcher executes a program where there is no setpriv."""
    command = [sys.executable, "-I", "-S", confining.__file__, "65534,65534,0,5,6", "--nofile=33", "--core=0", "--"]
    done = subprocess.run(
        [*command, "/bin/sh", "-c", "ulimit -n; cat /proc/self/status"], capture_output=True, text=True
    )
    assert done.stdout.startswith("33\n"), done.stderr
    status = status_of(done.stdout)
    assert (status["Uid"].split()[0], status["Groups"].split(), status["NoNewPrivs"]) == ("65534", ["5", "6"], "1")
    assert [int(status[name], 16) for name in SETS] == [0] * 5
    failed = subprocess.run([*command, "/no/such"], capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr == "/no/such is not started: [Errno 2] No such file or directory\n"
