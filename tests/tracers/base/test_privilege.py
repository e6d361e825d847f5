from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege, procfs

ADMIN, PERFMON, BPF = 1 << 21, 1 << 38, 1 << 39


def test_capabilities_are_the_effective_ones() -> None:
    status = Path("/proc/self/status").read_text()
    (bits,) = re.findall(r"^CapEff:\s*([0-9a-f]{16})$", status, re.MULTILINE)
    assert privilege.effective_capabilities() == int(bits, 16)


@pytest.mark.parametrize(
    ("bits", "allowed"),
    [
        (0, False),
        (ADMIN, True),
        (PERFMON, False),
        (BPF, False),
        (PERFMON | BPF, True),
        (~(ADMIN | PERFMON) & (1 << 41) - 1, False),
        ((1 << 41) - 1, True),
    ],
)
def test_what_suffices(bits: int, allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: bits)
    assert privilege.allowed() is allowed
    if allowed:
        privilege.require()
    else:
        with pytest.raises(StallscopeError):
            privilege.require()


@pytest.mark.parametrize(
    ("uid", "cause"),
    [
        (1000, "tracing needs root, or CAP_BPF and CAP_PERFMON: this user lacks CAP_BPF and CAP_PERFMON"),
        (0, "tracing needs CAP_SYS_ADMIN (or CAP_BPF and CAP_PERFMON): this root lacks CAP_BPF and CAP_PERFMON"),
    ],
)
def test_message(uid: int, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/trace-x", "-a"])
    with pytest.raises(StallscopeError) as caught:
        privilege.require()
    assert caught.value.cause == cause
    assert caught.value.remedy == (
        "run it as `sudo trace-x …`; in a container, --privileged; without root: docs/privileges.md"
    )
    assert caught.value.exit_code == 1


def test_only_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: BPF)
    with pytest.raises(StallscopeError, match=r"lacks CAP_PERFMON\n"):
        privilege.require()


def test_process_ids_must_be_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "in_host_pid_namespace", lambda: True)
    privilege.require_host_pids()
    monkeypatch.setattr(procfs, "in_host_pid_namespace", lambda: False)
    with pytest.raises(StallscopeError, match="a container's own") as caught:
        privilege.require_host_pids()
    assert "--pid=host" in caught.value.remedy


def test_clocks_must_be_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "in_host_pid_namespace", lambda: True)
    monkeypatch.setattr(procfs, "has_host_clocks", lambda: False)
    with pytest.raises(StallscopeError, match="time namespace") as caught:
        privilege.require_host_pids()
    assert "nsenter" in caught.value.remedy


def test_a_kernel_without_bpf_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An architecture's number is here that of no system call. The VM lane has such a kernel: its check `no_bpf`."""
    privilege.require_bpf()
    monkeypatch.setattr(privilege, "_SYS_BPF", {platform.machine(): 10_000})
    with pytest.raises(StallscopeError, match="has no BPF"):
        privilege.require_bpf()
