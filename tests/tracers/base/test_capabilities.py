"""Capabilities that are given up, in processes of their own: they do not come back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.base import capabilities
from stallscope.tracers.base.capabilities import AFTERWARDS, DURING, TO_ATTACH, Capability, held, mask

GIVE_UP = """
import json, subprocess
from stallscope.tracers.base import capabilities
before = capabilities.held()
capabilities.give_up_all_but(capabilities.DURING)
during = capabilities.held()
capabilities.give_up_all_but(capabilities.AFTERWARDS)
executed = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True).stdout
print(json.dumps([before, during, capabilities.held(), executed]))
"""


def given_up(*prefix: str) -> tuple[list[capabilities.Held], dict[str, str]]:
    done = subprocess.run([*prefix, sys.executable, "-c", GIVE_UP], capture_output=True, text=True, check=True)
    *sets, status = json.loads(done.stdout)
    lines = (line.partition(":") for line in status.splitlines())
    return [capabilities.Held(*each) for each in sets], {name: value.strip() for name, _, value in lines}


def test_what_is_held_is_what_the_kernel_says() -> None:
    lines = [line.split() for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Cap")]
    found = {name.rstrip(":"): int(bits, 16) for name, bits in lines}
    assert held() == (found["CapEff"], found["CapPrm"], found["CapInh"], found["CapBnd"])


def test_sets() -> None:
    assert TO_ATTACH < DURING
    assert AFTERWARDS == DURING - TO_ATTACH
    assert Capability.SYS_MODULE not in DURING
    assert mask(frozenset((Capability.CHOWN, Capability.BPF))) == 1 | 1 << 39


def test_root_gives_up(require: Callable[[bool, str], None]) -> None:
    """No process that this one executes as root gets them again, nor does this one."""
    require(os.geteuid() == 0, "this needs root")
    (before, during, after), executed = given_up()
    assert before.bounding & 1 << Capability.SYS_MODULE
    for kept, found in ((DURING, during), (AFTERWARDS, after)):
        assert found.effective == before.effective & mask(kept)
        assert found.permitted == before.permitted & mask(kept)
        assert found.bounding == before.bounding & mask(kept)
    assert int(executed["CapEff"], 16) == after.effective
    assert executed["NoNewPrivs"] == "1"


@pytest.mark.parametrize("names", ["bpf,perfmon,sys_ptrace", ""])
def test_another_user_gives_up(names: str, require: Callable[[bool, str], None]) -> None:
    """The ambient ones too; the bounding set stays, which an ordinary user may not change."""
    require(os.geteuid() == 0, "this needs root")
    words = ",".join(["-all", *(f"+{name}" for name in names.split(",") if name)])
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps", words, "--ambient-caps", words)
    (before, during, after), executed = given_up(*user)
    assert during == before
    assert after.permitted == (1 << Capability.SYS_PTRACE if names else 0)
    assert int(executed["CapEff"], 16) == after.effective == after.permitted
