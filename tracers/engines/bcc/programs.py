"""Compiles, loads and attaches the programs."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass

from ....converters.base.errors import StallscopeError
from ...bcc_compiler.compiler import compile_c
from ...kernel import perf_events
from ...kernel.bytecode import Program, load, with_maps
from ...kernel.libbpf import BpfError
from ...kernel.tracepoint_format import Format, read_format
from .source import SAMPLE, TRACEPOINTS, Choice, source

_RAW = 1 << 10
"""PERF_SAMPLE_RAW of include/uapi/linux/perf_event.h."""
_SET_BPF, _ENABLE = 0x40042408, 0x2400
"""PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_ENABLE."""
_DISABLED, _EXCLUDE_IDLE = 1 << 0, 1 << 7
_OLD_KERNEL = "the engine bcc needs Linux 4.18 or newer, for bpf_get_stack()"


@dataclass(frozen=True)
class Made:
    """Programs that are compiled. ``letters``: of states, by bit of prev_state."""

    code: Mapping[str, bytes]
    formats: Mapping[str, Format]
    letters: dict[int, str]
    version: str
    """Version of bcc."""


def make(choice: Choice) -> Made:
    """StallscopeError without bcc or tracefs, or if it does not compile them."""
    formats = {tracepoint: read_format(tracepoint) for tracepoint in TRACEPOINTS.values()}
    text = source(choice, formats, os.getpid())
    names = [*TRACEPOINTS, *([SAMPLE] if choice.samples else [])]
    found = compile_c(text, names)
    return Made(found.programs, formats, formats["sched:sched_switch"].flags(), found.version)


class Attached:
    """The loaded programs at their places. `close` removes them."""

    def __init__(self, made: Made, maps: Mapping[int, int], frequency: int = 0) -> None:
        """``maps``: descriptors by number. ``frequency``: samples per second and core. BpfError if the kernel refuses,
        StallscopeError if there are no events."""
        self._fds: list[int] = []
        self.programs: dict[str, int] = {}
        """Descriptors by name."""
        self.blind = 0
        """Cores that went away meanwhile: without samples."""
        try:
            for name, code in made.code.items():
                kind = Program.PERF_EVENT if name == SAMPLE else Program.TRACEPOINT
                self.programs[name] = load(with_maps(code, dict(maps)), name, kind=kind)
            for name, tracepoint in TRACEPOINTS.items():
                self._attach(name, self._tracepoint(made.formats[tracepoint]))
            if SAMPLE in self.programs:
                self._sample(frequency)
        except OSError as error:
            self.close()
            raise StallscopeError(f"no events of the scheduler: {error.strerror}", "trace-doctor says why") from None
        except BpfError as error:
            self.close()
            # The helper that 4.18 brought is unknown to older ones.
            if any("unknown func bpf_get_stack" in text or "invalid func" in text for text in error.log):
                raise StallscopeError(_OLD_KERNEL, "use --engine perf", details="\n".join(error.log)) from None
            raise
        except BaseException:
            self.close()
            raise

    def _tracepoint(self, event: Format) -> int:
        attr = perf_events.Attr(
            type=perf_events.TYPE_TRACEPOINT, config=event.number, sample_period=1, sample_type=_RAW
        )
        # A program runs on every core, wherever its event is.
        return perf_events.open_event(attr, perf_events.online_cpus()[0])

    def _sample(self, frequency: int) -> None:
        flags = perf_events.FREQUENCY | _DISABLED | _EXCLUDE_IDLE
        for cpu in perf_events.online_cpus():
            attr = perf_events.Attr(type=perf_events.TYPE_SOFTWARE, config=0, sample_period=frequency, flags=flags)
            try:
                event = perf_events.open_event(attr, cpu)
            except OSError as error:
                if error.errno != errno.ENODEV:
                    raise
                self.blind += 1
                continue
            self._attach(SAMPLE, event)

    def _attach(self, name: str, event: int) -> None:
        self._fds.append(event)
        fcntl.ioctl(event, _SET_BPF, self.programs[name])
        fcntl.ioctl(event, _ENABLE, 0)

    def close(self) -> None:
        """A second call does nothing."""
        fds, self._fds = [*self._fds, *self.programs.values()], []
        self.programs = {}
        for fd in fds:
            os.close(fd)
