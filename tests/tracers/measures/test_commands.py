"""Measures of commands without options, which are those of the list: trace-doctor and recommendations believe it."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import pytest
from stallscope.tracers import entry
from stallscope.tracers.engines.protocol import Request
from stallscope.tracers.measures.calls import Calls, KernelCalls
from stallscope.tracers.measures.commands import COMMANDS, IOCTL, users
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu
from stallscope.tracers.measures.protocol import Measure

LIBC = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line)
TARGETS = {"trace-func": (f"{LIBC}:getenv",)}
OTHERS = {"trace-doctor"}
"""Commands that measure nothing."""


def test_every_command_is_listed() -> None:
    names = {
        f"trace-{name}" for name, each in vars(entry).items() if callable(each) and each.__module__ == entry.__name__
    }
    assert names - OTHERS == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_what_the_list_says(command: str, recorded: list[Request]) -> None:
    main = importlib.import_module(f"stallscope.tracers.{command.removeprefix('trace-')}").main
    main([*TARGETS.get(command, ()), "-p", "4711"])
    (request,) = recorded
    if command in TARGETS:
        assert [type(each) for each in request.measures] == [type(each) for each in COMMANDS[command]] == [Calls]
    else:
        # The length of a scan's slices follows from its own, and trace-nccl names its functions.
        assert tuple(map(_without_slices, request.measures)) == COMMANDS[command]


def _without_slices(measure: Measure) -> Measure:
    if isinstance(measure, Calls):
        return replace(measure, wanted=Calls().wanted, arguments=None)
    return replace(measure, slice=0) if isinstance(measure, OffCpu) else measure


def test_users_of_a_measure() -> None:
    assert users(OnCpu) == ("trace-oncpu", "trace-wall", "trace-nccl", "trace-scan")
    assert users(Calls) == ("trace-cuda", "trace-func", "trace-nccl", "trace-scan")
    assert users(IOCTL) == ("trace-ioctl",), "trace-cuda and trace-scan do without"
    assert users(KernelCalls) == ()
