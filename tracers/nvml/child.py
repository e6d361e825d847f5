"""The process that asks the driver: started by `client.py`. Its output is a line of JSON for each look.

It is bound to NVIDIA's library itself, by ctypes: the driver brings that library, and the module nvidia-ml-py adds
nothing to the dozen functions that are called here. Names, structures and numbers are those of nvml.h.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
PERIOD = 1.0
"""Seconds between two looks."""
MOST_GPUS = 64
MOST_BYTES = 16 << 20
"""Bytes of output: hours of 8 GPUs. Then it ends."""
NO_LIBRARY = -1
"""Number of an error beside those of nvml.h: there is no library, or it lacks a function."""
_NOT_SUPPORTED = 3
_NAME = 96
"""NVML_DEVICE_NAME_V2_BUFFER_SIZE."""
_SM = 1
"""NVML_CLOCK_SM."""
_PR_SET_PDEATHSIG = 1


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


class Failed(Exception):
    """A function has returned an error: its number."""


class Driver:
    """Library, and what its calls cost."""

    def __init__(self, library: str) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError:
            raise Failed(NO_LIBRARY) from None
        self.calls = self.time = self.most = self.failed = 0
        self.call("nvmlInit_v2")

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function. Failed."""
        function = getattr(self._library, name, None)
        if function is None:
            raise Failed(NO_LIBRARY)
        began = time.monotonic_ns()
        status = function(*arguments)
        took = time.monotonic_ns() - began
        self.calls, self.time, self.most = self.calls + 1, self.time + took, max(self.most, took)
        if status:
            self.failed += status != _NOT_SUPPORTED
            raise Failed(status)

    def number(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint) -> int | None:
        """A number that a function writes; None if it fails."""
        value = kind()
        try:
            self.call(name, *arguments, ctypes.byref(value))
        except Failed:
            return None
        return int(value.value)

    def fill(self, name: str, device: ctypes.c_void_p, made: Any) -> Any:
        """A structure that a function fills; None if it fails."""
        try:
            self.call(name, device, ctypes.byref(made))
        except Failed:
            return None
        return made

    def devices(self) -> list[ctypes.c_void_p]:
        """Handles of the GPUs. Failed."""
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        found = []
        for index in range(min(count.value, MOST_GPUS)):
            device = ctypes.c_void_p()
            try:
                self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
            except Failed:
                continue
            found.append(device)
        return found

    def cost(self) -> list[int]:
        """Number of calls, their ns, those of the longest one, and how many failed, since the last time."""
        found = [self.calls, self.time, self.most, self.failed]
        self.calls = self.time = self.most = self.failed = 0
        return found


def about(driver: Driver, device: ctypes.c_void_p) -> dict[str, Any]:
    """Properties that do not change of a GPU."""
    name = ctypes.create_string_buffer(_NAME)
    try:
        driver.call("nvmlDeviceGetName", device, name, ctypes.c_uint(_NAME))
    except Failed:
        name.value = b""
    return {
        "minor": driver.number("nvmlDeviceGetMinorNumber", device),
        "name": os.fsdecode(name.raw.partition(b"\0")[0]),
        "clock_most": driver.number("nvmlDeviceGetMaxClockInfo", device, ctypes.c_int(_SM)),
        "power_limit": driver.number("nvmlDeviceGetEnforcedPowerLimit", device),
    }


def look(driver: Driver, device: ctypes.c_void_p) -> dict[str, Any]:
    """State of a GPU now, null where the driver does not tell."""
    used = driver.fill("nvmlDeviceGetUtilizationRates", device, _Utilization())
    memory = driver.fill("nvmlDeviceGetMemoryInfo", device, _Memory())
    return {
        "busy": used and used.gpu,
        "copying": used and used.memory,
        "memory_used": memory and memory.used,
        "memory": memory and memory.total,
        "clock": driver.number("nvmlDeviceGetClockInfo", device, ctypes.c_int(_SM)),
        "power": driver.number("nvmlDeviceGetPowerUsage", device),
        "limits": driver.number("nvmlDeviceGetCurrentClocksThrottleReasons", device, kind=ctypes.c_ulonglong),
        "cost": driver.cost(),
    }


def _write(line: dict[str, Any]) -> int:
    return os.write(1, json.dumps(line, separators=(",", ":")).encode() + b"\n")


def main() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    try:
        driver = Driver(sys.argv[1])
        devices = driver.devices()
    except Failed as failed:
        _write({"error": failed.args[0]})
        return
    written = _write({"gpus": [about(driver, device) for device in devices], "cost": driver.cost()})
    while written < MOST_BYTES:
        written += _write({"at": time.time_ns(), "looks": [look(driver, device) for device in devices]})
        time.sleep(PERIOD)


if __name__ == "__main__":
    main()
