"""Calls of the kernel's own functions, where it takes probes on them: how long, and whether the thread waited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .....converters.base.text import some
from .....converters.base.units import plural
from ....kernel.bpfobject import Link, Object, Program
from ....kernel.libbpf import BpfError
from ....kernel.records import Origin
from ....kernel.tracepoints import attach_function
from ....kernel.uprobes import Way
from ....measures.calls import Calls, KernelCalls
from ....probe_targets.events import Chosen
from ...rows import Row, Timed
from .calls import CallsCollector, Time
from .event_probes import KERNELS, refusal
from .ioctl_records import NUMBER_SHIFT
from .open_calls import Part
from .probed import Probe
from .protocol import Ended

if TYPE_CHECKING:
    from ....images.maps import Mapping as MappedFile

_PROGRAMS = ("calls_kernel_enter", "calls_kernel_return")
_STACKS = "kernel_calls"
_INSIDE = 1 << 14
"""Threads that can be inside such a function at a time."""


class KernelProbes(Link):
    """The probes on the kernel's functions: what `CallsCollector` needs to know of them."""

    def __init__(self, loaded: Object, suffix: str, names: Sequence[str]) -> None:
        """StallscopeError if the kernel takes none of them."""
        super().__init__(0)
        self.functions = [Probe(name, KERNELS, True) for name in names]
        self.problems: dict[str, str] = {}
        self.is_closed = False
        self._links: list[Link] = []
        self._refused: list[int] = []
        enter, end = (name + suffix for name in _PROGRAMS)
        try:
            error = self._attach(loaded, enter, end)
            if error and len(self._refused) == len(names):
                raise refusal(Chosen((), names), error)
        except BaseException:
            self.close()
            raise

    def _attach(self, loaded: Object, enter: str, end: str) -> BpfError | None:
        """The first refusal."""
        first: BpfError | None = None
        for number, (name, _, _) in enumerate(self.functions):
            made: list[Link] = []
            try:
                # The return first: every call that is seen to begin is seen to end.
                made.append(attach_function(loaded, end, name, number, at_return=True))
                made.append(attach_function(loaded, enter, name, number))
            except BpfError as error:
                first = first or error
                self._refused.append(number)
                for link in made:
                    link.close()
            else:
                self._links += made
        return first

    def probes(self) -> list[Probe]:
        """The functions that have one."""
        return [probe for number, probe in enumerate(self.functions) if number not in self._refused]

    def look(self, pid: int, mapping: MappedFile) -> None:
        """Files have none of them."""

    def expect(self, path: str, *, is_program: bool) -> None:
        """Does nothing: the kernel maps no files."""

    def remarks(self) -> Iterator[str]:
        """Sentences that the reader should know."""
        yield f"probes were on {plural(len(self.probes()), 'function')} of the kernel, at entry and return"
        if self._refused:
            names = [self.functions[number].name for number in self._refused]
            yield f"the kernel takes no probe on {plural(len(names), 'other function')}: {some(names)}"

    def close(self) -> None:
        self.is_closed = True
        links, self._links = self._links, []
        for link in links:
            link.close()


class KernelCallsCollector(CallsCollector):
    """Collector of calls of the kernel's functions: as that of calls in libraries, by other probes."""

    name = KernelCalls.name

    def __init__(self, measure: KernelCalls) -> None:
        super().__init__(Calls(), way=Way.SINGLE)
        self.columns = measure.columns
        self._functions = measure.functions
        self.modules = ()
        self._programs: list[Program] = []
        self._misses = 0

    @property
    def placed(self) -> tuple[str, ...]:  # type: ignore[override]
        return _PROGRAMS

    def knobs(self) -> Mapping[str, int]:
        return {}

    def sizes(self, entries: int) -> Mapping[str, int]:
        return {**super().sizes(entries), _STACKS: _INSIDE}

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        probes = KernelProbes(loaded, suffix, self._functions)
        self.probed = probes  # type: ignore[assignment]
        self._programs = [loaded.programs[name + suffix] for name in _PROGRAMS]
        return [probes]

    def read(self, loaded: Object) -> None:
        super().read(loaded)
        self._misses = sum(program.misses for program in self._programs)

    def _going_on(self, ended: Ended) -> list[Part]:
        """No parts of calls that go on: what a thread has waited in them is known when they return."""
        return []

    def calls(self, ended: Ended) -> list[Timed]:
        found = []
        for origin, call in super().calls(ended):
            call.device, call.library = KERNELS, ""
            found.append(Timed(origin, call))
        return found

    def functions(self) -> frozenset[tuple[str, str]]:
        return frozenset()

    def losses(self) -> Mapping[str, int]:
        return {**super().losses(), "runs of probes, in any thread, that the kernel left out": self._misses}

    def remarks(self) -> Iterable[str]:
        yield from super().remarks()
        yield "calls that had not ended are not counted"

    def _rows(self, origin: Origin, time: Time, *, is_open: bool = False) -> Iterator[Row]:
        assert self.probed
        name = self.probed.functions[origin.state >> NUMBER_SHIFT].name
        for row in super()._rows(origin, time, is_open=is_open):
            yield row._replace(call=f"{name} {KERNELS}")
