"""Probes at what the user named, of which only the number of hits counts: where they are, and what has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .....converters.base.errors import StallscopeError
from .....converters.base.text import printable, some
from .....converters.base.units import plural
from ....holder.links import Place
from ....images.elf import ElfError, ElfFile, FileSource
from ....images.functions import Function, find_functions, function_names
from ....images.usdt import UsdtProbe, usdt_probes
from ....kernel.attaching import attach_possible
from ....kernel.bpfobject import Object
from ....kernel.libbpf import BpfError
from ....kernel.tracepoints import attach_function, attach_tracepoint, has_kprobes, kernel_functions, tracepoints
from ....kernel.uprobes import Way
from ....probe_targets.entries import CODE, entry
from ....probe_targets.events import KERNEL, TRACEPOINT, Chosen, Events, nearest
from .probed import MOST_PROBES, Probe, Probed, of_another_machine

NUMBER = (1 << 32) - 1
"""The bits of a cookie that have the number of the probe."""
KERNELS = "kernel"
"""The file of tracepoints and of the kernel's functions."""
MOST_IN_KERNEL = 1024
"""Tracepoints, or functions of the kernel, that one trace takes: each is attached by itself."""
NO_KPROBES = "this kernel takes no probes on its functions"


_LISTS = {TRACEPOINT: "--list 't:*:sched*' lists those of a pattern", KERNEL: "/proc/kallsyms has their names"}


def chosen_in_kernel(events: Events) -> Chosen:
    """StallscopeError if there is nothing of a name, or too much."""
    found: dict[str, list[str]] = {TRACEPOINT: [], KERNEL: []}
    for kind, what in ((TRACEPOINT, "tracepoint"), (KERNEL, "function of the kernel")):
        targets = events.of_kind(kind)
        if not targets:
            continue
        names = tracepoints() if kind == TRACEPOINT else kernel_functions()
        for target in targets:
            parts = ((name, *name.partition(":")[::2]) if kind == TRACEPOINT else (name, "", name) for name in names)
            matching = [name for name, group, own in parts if target.matches(group, own)]
            if not matching:
                near = nearest((target,), names)
                remedy = f"there is {some(near)}" if near else _LISTS[kind]
                raise StallscopeError(f"there is no {what} {printable(target.name)}", remedy, exit_code=2)
            found[kind] += matching
        found[kind] = list(dict.fromkeys(found[kind]))
        if len(found[kind]) > MOST_IN_KERNEL:
            number = plural(len(found[kind]), what).replace("function of the kernels", "functions of the kernel")
            raise StallscopeError(
                f"{number} match, and at most {MOST_IN_KERNEL:,} are traced", "give a narrower pattern", exit_code=2
            )
    return Chosen(found[TRACEPOINT], found[KERNEL])


class EventProbes(Probed):
    """The probes; a function, a USDT probe with all its places, or a tracepoint has one number."""

    PREFIX = "events"
    """Prefix of the programs that are attached."""

    def __init__(self, loaded: Object, way: Way, suffix: str, wanted: Events) -> None:
        super().__init__(loaded, way, ("", f"{self.PREFIX}_user{suffix}", ""), wanted)
        self._events = wanted
        self._suffix = suffix
        self._places = 0
        """Number of places of USDT probes."""
        self._usdt: set[int] = set()

    def attach_in_kernel(self, chosen: Chosen) -> None:
        """Puts probes on what the user named of the kernel. StallscopeError if it takes none of them."""
        for kind, names, attach, program in (
            (TRACEPOINT, chosen.tracepoints, attach_tracepoint, "tracepoint"),
            (KERNEL, chosen.functions, attach_function, "kernel"),
        ):
            errors = []
            for name, bits in self.fitting_in_kernel(kind, names):
                number = len(self.functions)
                self.functions.append(Probe(name, KERNELS, True))
                try:
                    self._links.append(
                        attach(self._loaded, f"{self.PREFIX}_{program}{self._suffix}", name, bits | number)
                    )
                except BpfError as error:
                    self._refused.setdefault(KERNELS, {}).setdefault(error.number, []).append(number)
                    errors.append(error)
            if errors and len(errors) == len(names):
                raise refusal(chosen, errors[0])

    def fitting_in_kernel(self, kind: str, names: Sequence[str]) -> list[tuple[str, int]]:
        """Chooses the places that get a probe, with more bits of each one's cookie. They get the next numbers."""
        return [(name, 0) for name in names]

    def fitting_usdt(self, path: str, first: int, found: Sequence[UsdtProbe]) -> list[tuple[UsdtProbe, list[int]]]:
        """Chooses a file's USDT probes that get one, with more bits of the cookie for each of its places. Their numbers
        begin with ``first``."""
        return [(usdt, [0] * len(usdt.sites)) for usdt in found]

    def _probe(self, fd: int, path: str, identity: tuple[int, int], *, is_program: bool) -> None:
        elf = ElfFile(FileSource(fd))
        if why := of_another_machine(elf):
            self.problems[path] = why
            return
        probes, places, number, functions = list[Probe](), list[Place](), len(self.functions), list[Function]()
        if self._events.has_functions(path, identity):
            self._wanted.learn(path, identity, lambda: function_names(elf))
            functions = find_functions(elf, lambda name: self._wanted.wants(name, path, identity), CODE)
            for function, bits in self.fitting(fd, elf, path, self._not_done(functions)):
                at = entry(function.code)
                places.append(Place(function.offset + at.offset, bits | number + len(probes)))
                probes.append(Probe(self._wanted.readable(function.name), path, at.is_fast))
        known = usdt_probes(elf) if self._events.has_usdt(path, identity) else []
        wanted = [usdt for usdt in known if self._events.wants_usdt(usdt.provider, usdt.name, path, identity)]
        new = [usdt for usdt in wanted if not self._done.intersection(site.offset for site in usdt.sites)]
        self._done.update(site.offset for usdt in new for site in usdt.sites)
        for usdt, each in self.fitting_usdt(path, number + len(probes), new):
            at_number = number + len(probes)
            self._usdt.add(at_number)
            places += (
                Place(site.offset, bits | at_number, site.counter) for site, bits in zip(usdt.sites, each, strict=True)
            )
            probes.append(Probe(usdt.title, path, all(is_fast(elf, site.address) for site in usdt.sites)))
            self._places += len(usdt.sites)
        if not functions and not wanted:
            self._without[path] = self._nearest(elf, known, path, identity)
        if not probes:
            return
        if number + len(probes) > MOST_PROBES:
            raise ElfError(f"more than {plural(MOST_PROBES, 'probe')} would be made: give a narrower expression")
        attached = attach_possible(self._loaded, self._way, self._programs, fd, places)
        self._links += attached.links
        self.functions += probes
        self._note_refused(path, places, attached.refused)

    def _note_refused(self, path: str, places: Sequence[Place], refused: dict[Place, int]) -> None:
        """A USDT probe counts as refused if one of its places is."""
        for place in places:
            if error := refused.get(place):
                known = self._refused.setdefault(path, {}).setdefault(error, [])
                if (number := place.cookie & NUMBER) not in known:
                    known.append(number)

    def _nearest(self, elf: ElfFile, known: Sequence[UsdtProbe], path: str, identity: tuple[int, int]) -> list[str]:
        if self._events.has_functions(path, identity):
            return self._wanted.nearest(function_names(elf))
        targets = [event for event in self._events.events if event.is_file(path, identity)]
        return nearest(targets, [probe.title for probe in known])

    def remarks(self) -> Iterator[str]:
        probes = self.probes()
        in_kernel = [probe for probe in probes if probe.path == KERNELS]
        in_files = [probe for probe in probes if probe.path != KERNELS]
        if in_files:
            usdt = sum(number < len(self.functions) for number in self._usdt)
            functions = len(in_files) - usdt
            kinds = [plural(functions, "function")] if functions > 0 else []
            kinds += [f"{plural(usdt, 'USDT probe')} in {plural(self._places, 'place')}"] if usdt else []
            files = plural(len({probe.path for probe in in_files}), "file")
            yield f"probes were on {' and '.join(kinds)} of {files}, at the entry alone, by {self._way.title}"
        elif self._events.libraries:
            yield "no traced process has mapped a file with what was named"
        if in_kernel:
            yield f"probes were on {plural(len(in_kernel), 'place')} of the kernel"
        yield from self.remarks_on_files()


def is_fast(elf: ElfFile, address: int) -> bool:
    """Whether the kernel emulates the instruction there: that of a USDT probe is nearly always a nop."""
    at = entry(elf.code_at(address, 1) + bytes(CODE - 1))
    return at.is_fast and not at.offset


def refusal(chosen: Chosen, error: BpfError) -> StallscopeError:
    """Error that says why the kernel takes a probe on none of these, and what can be done."""
    if not chosen.functions:
        return StallscopeError(
            f"the kernel takes no program on {some(chosen.tracepoints)}: {error.cause}",
            "`trace-doctor` says what is missing",
        )
    if not has_kprobes():
        return StallscopeError(
            f"{NO_KPROBES}: it was built without CONFIG_KPROBES", "use a tracepoint: --list 't:*:*' lists them"
        )
    return StallscopeError(
        f"the kernel takes no probe on {some(chosen.functions)}: {error.cause}",
        "it may be inlined, or one that probes are not allowed on: /sys/kernel/debug/kprobes/blacklist",
    )
