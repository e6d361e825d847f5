"""Entry points of the console scripts: few imports before Ctrl-C can be silent. See `starting`."""

from __future__ import annotations

from ..converters.base.starting import run


def offcpu() -> int:
    """``trace-offcpu``."""
    return run("stallscope.tracers.offcpu")


def oncpu() -> int:
    """``trace-oncpu``."""
    return run("stallscope.tracers.oncpu")


def wall() -> int:
    """``trace-wall``."""
    return run("stallscope.tracers.wall")


def wakeup() -> int:
    """``trace-wakeup``."""
    return run("stallscope.tracers.wakeup")


def ioctl() -> int:
    """``trace-ioctl``."""
    return run("stallscope.tracers.ioctl")


def cuda() -> int:
    """``trace-cuda``."""
    return run("stallscope.tracers.cuda")


def nccl() -> int:
    """``trace-nccl``."""
    return run("stallscope.tracers.nccl")


def func() -> int:
    """``trace-func``."""
    return run("stallscope.tracers.func")


def scan() -> int:
    """``trace-scan``."""
    return run("stallscope.tracers.scan")


def doctor() -> int:
    """``trace-doctor``."""
    return run("stallscope.tracers.doctor")
