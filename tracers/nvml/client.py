"""Starts the process that asks the driver about GPUs (`child`), reads what it has written, and never waits for it.

It hangs where the driver hangs: then it is left alone, and the report says so. What it has written is hostile.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...converters.base import helpers
from ...converters.base.errors import StallscopeError
from ...converters.model.gpus import REASONS, UNKNOWN, Gpu, GpuLimit
from ..outside.client import CLIENT
from .child import LIBRARY, MOST_BYTES, NO_LIBRARY, PERIOD

if TYPE_CHECKING:
    import subprocess

START = 15.0
"""Seconds for the driver's first answer: without persistence mode it wakes all GPUs up."""
PATIENCE = 2.0
"""Seconds beyond a period after which the driver counts as silent."""
_PAUSE = 0.02
_END = 0.2
_NAME = 96
_MOST = 1 << 63
_NSEC = 1_000_000_000
_LEAVE_OUT = "leave out --nvml"
_ERRORS = {
    NO_LIBRARY: (f"there is no usable {LIBRARY}, which NVIDIA's driver brings", "install the driver's libraries"),
    4: ("NVIDIA's driver denies this user to look at its GPUs", "run as root"),
    9: ("NVIDIA's driver is not loaded", "load the kernel module nvidia"),
    18: ("NVIDIA's library and its kernel module are of different versions", "load the module again, or restart"),
}
"""Causes and remedies by number: nvmlReturn_t of nvml.h."""


class Nvml:
    """The process, from its start on."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self._process, self._output = process, output

    @classmethod
    def begin(
        cls, library: str = LIBRARY, environment: Mapping[str, str] | None = None, seconds: float = START
    ) -> Nvml:
        """Starts the process, and waits until the driver has named its GPUs. StallscopeError if there are none, or none
        are named in so many seconds.

        It has our rights: devices of GPUs may be root's."""
        output = os.memfd_create("stallscope-nvml", os.MFD_CLOEXEC)
        try:
            command = helpers.python_module(f"{__package__}.child", library)
            process = helpers.start(command, environment=environment, stdout=output)
        except OSError as error:
            os.close(output)
            raise StallscopeError(f"the process that asks about GPUs cannot be started: {error}", _LEAVE_OUT) from None
        CLIENT.pids.add(process.pid)
        made = cls(process, output)
        try:
            made._check(seconds)
        except BaseException:
            made.close()
            raise
        return made

    def _check(self, seconds: float) -> None:
        last = time.monotonic() + seconds
        while not (lines := self._lines()):
            if self._process.poll() is not None and not self._lines():
                raise StallscopeError("the process that asks about GPUs has ended without an answer", _LEAVE_OUT)
            if time.monotonic() > last:
                raise StallscopeError(
                    f"NVIDIA's driver has not answered within {seconds:g} s: it hangs, or is busy", _LEAVE_OUT
                )
            time.sleep(_PAUSE)
        if "error" in lines[0]:
            number = _number(lines[0]["error"])
            cause, remedy = _ERRORS.get(number, (f"NVIDIA's driver refuses to tell of its GPUs: error {number}", ""))
            raise StallscopeError(cause, f"{remedy}, or {_LEAVE_OUT}" if remedy else _LEAVE_OUT)
        if not lines[0].get("gpus"):
            raise StallscopeError("NVIDIA's driver has no GPU that it tells of", _LEAVE_OUT)

    def gpus(self, start: int = 0, end: int = _MOST) -> list[Gpu]:
        """The GPUs between two times, in ns since the epoch; also if the driver hangs now."""
        return summed(self._lines(), start, min(end, time.time_ns()))

    def close(self) -> None:
        """Ends the process, which is not waited for if it hangs in the driver."""
        helpers.kill(self._process, _END)
        os.close(self._output)

    def _lines(self) -> list[Any]:
        data = os.pread(self._output, MOST_BYTES + (1 << 20), 0)
        found = []
        for line in data.split(b"\n")[:-1]:
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
        return [line for line in found if isinstance(line, dict)]


def summed(lines: Sequence[Any], start: int, end: int) -> list[Gpu]:
    """The GPUs of these lines, of looks between two times. The clock may have been set meanwhile: then there are
    fewer."""
    if not lines:
        return []
    every = [line for line in lines[1:] if isinstance(line.get("at"), int) and isinstance(line.get("looks"), list)]
    within = [line["looks"] for line in every if start <= line["at"] <= end]
    answered = max((line["at"] for line in every if line["at"] <= end), default=start)
    late = end - answered
    silent = late if late > (PERIOD + PATIENCE) * _NSEC else 0
    gpus = lines[0].get("gpus") or []
    return [_gpu(each, [looks[i] for looks in within if i < len(looks)], silent) for i, each in enumerate(gpus)]


def _gpu(about: Mapping[str, Any], looks: Sequence[Mapping[str, Any]], silent: int) -> Gpu:
    def known(key: str) -> list[int]:
        return [number for look in looks if (number := _number(look.get(key))) >= 0]

    def mean(key: str, times: int = 1) -> int:
        found = known(key)
        return round(sum(found) * times / len(found)) if found else UNKNOWN

    reasons: Counter[str] = Counter()
    for mask in known("limits"):
        reasons.update(reason for bit, reason in REASONS.items() if mask & bit)
    costs = [[*map(_number, look["cost"])] for look in looks if len(look.get("cost", ())) == 4]
    calls, spent, longest, failed = zip(*costs, strict=True) if costs else ((), (), (), ())
    return Gpu(
        minor=_number(about.get("minor")),
        name=str(about.get("name", ""))[:_NAME],
        samples=len(looks),
        busy=mean("busy", 10),
        copying=mean("copying", 10),
        memory_used=max(known("memory_used"), default=UNKNOWN),
        memory=max(known("memory"), default=UNKNOWN),
        clock=mean("clock"),
        clock_most=_number(about.get("clock_most")),
        power=mean("power"),
        power_limit=_number(about.get("power_limit")),
        calls=sum(calls),
        call_time=sum(spent),
        call_most=max(longest, default=0),
        failed=sum(failed),
        silent=silent,
        limits=[GpuLimit(reason, number) for reason, number in reasons.items()],
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) and UNKNOWN <= value < _MOST else UNKNOWN
