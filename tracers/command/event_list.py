"""Lines of ``trace-func --list`` for things that are counted: entries of functions, USDT probes, and what was named
of the kernel. Nothing is attached."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable, shortened, some
from ...converters.base.units import plural
from ..base.scope import Scope
from ..engines.ebpf.measures.event_probes import KERNELS, NO_KPROBES, chosen_in_kernel, is_fast
from ..engines.ebpf.measures.probed import of_another_machine
from ..images.elf import ElfError, ElfFile, FileSource
from ..images.files import HOST
from ..images.functions import find_functions, function_names
from ..images.usdt import UsdtProbe, usdt_probes
from ..kernel.tracepoints import fields, has_kprobes
from ..probe_targets.entries import CODE, entry
from ..probe_targets.events import Chosen, Events, nearest
from .target_list import address_in, opened_files

_LONGEST = 120
"""Characters of a name."""
_COSTS = {True: "about 1 µs", False: "about 11 µs"}
"""Cost of a hit, by whether the kernel emulates the instruction: docs/func.md has the measurement."""
_MORE_FIELDS = 16


class Listed(NamedTuple):
    """A file: what of it is meant, each as a line."""

    path: str
    lines: list[str]
    problem: str = ""
    nearest: tuple[str, ...] = ()
    has_usdt: bool = False


def check(events: Events) -> Chosen:
    """Tracepoints and functions of the kernel that were named. StallscopeError if a file that is there has nothing for
    one of the targets."""
    chosen = chosen_in_kernel(events)
    alone = [(target.libraries, target.text, Events.all_of([target], [])) for target in events.targets]
    alone += [(event.libraries, event.text, Events.all_of([], [event])) for event in events.events]
    for given, text, wanted in alone:
        if len(given) == 1 and given[0].identity:
            _check_file(given[0].path, text, wanted)
    return chosen


def _check_file(path: str, text: str, wanted: Events) -> None:
    listed, shown = _read_path(path, wanted), printable(path)
    if listed.problem:
        raise StallscopeError(f"{shown}: {printable(listed.problem)}", "give a 64-bit library or program", exit_code=2)
    if not listed.lines:
        raise StallscopeError(f"{shown} has nothing for {printable(text)!r}", _has(listed), exit_code=2)


def lines(events: Events, scope: Scope | None, command: tuple[str, ...]) -> Iterator[str]:
    """Each file with what matches, then what matches of the kernel. StallscopeError when nothing does."""
    chosen = chosen_in_kernel(events)
    files = list(_files(events, scope, command)) if events.libraries else []
    if events.libraries and not files and not any(chosen):
        raise StallscopeError(
            "no file of that name is mapped, or where the loader looks", "give a path, or -p of a process that maps it"
        )
    for listed in files:
        yield printable(listed.path)
        if listed.problem:
            yield f"  not traced: {printable(listed.problem)}"
        elif not listed.lines:
            yield f"  nothing matches: {_has(listed)}"
        yield from (f"  {line}" for line in listed.lines)
    if any(chosen):
        yield KERNELS
        yield from (f"  {line}" for line in _of_kernel(chosen))
    found = sum(len(listed.lines) for listed in files) + sum(map(len, chosen))
    if not found:
        raise StallscopeError("nothing matches", "patterns are those of the shell: 'u:libc.so.6:*jmp'")
    refused = 0 if has_kprobes() else len(chosen.functions)
    yield f"{plural(found, 'event')}: {found - refused:,} can be counted"


def _files(events: Events, scope: Scope | None, command: tuple[str, ...]) -> Iterator[Listed]:
    seen: set[tuple[int, int]] = set()
    for path, fd in opened_files(events, scope, command):
        try:
            status = os.fstat(fd)
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield _read(fd, path, events)
        finally:
            os.close(fd)


def _read_path(path: str, events: Events) -> Listed:
    try:
        fd = HOST.open_regular(path)
    except (OSError, ValueError) as error:
        return Listed(path, [], str(error))
    try:
        return _read(fd, path, events)
    finally:
        os.close(fd)


def _read(fd: int, path: str, events: Events) -> Listed:
    status = os.fstat(fd)
    identity = status.st_dev, status.st_ino
    made, near, known = list[str](), list[str](), list[UsdtProbe]()
    try:
        elf = ElfFile(FileSource(fd))
        if why := of_another_machine(elf):
            return Listed(path, [], why)
        if events.has_functions(path, identity):
            names = function_names(elf)
            events.learn(path, identity, lambda: names)
            for function in find_functions(elf, lambda name: events.wants(name, path, identity), CODE):
                address, cost = address_in(elf, function.offset), _COSTS[entry(function.code).is_fast]
                made.append(f"{address:#014x}  {_shown(events.readable(function.name))}  {cost} a call")
            near += () if made else events.nearest(names)
        if events.has_usdt(path, identity):
            known = usdt_probes(elf)
            wanted = [probe for probe in known if events.wants_usdt(probe.provider, probe.name, path, identity)]
            made += (_usdt(elf, probe) for probe in wanted)
            near += () if made else nearest(events.events, [probe.title for probe in known])
    except ElfError as error:
        return Listed(path, [], str(error))
    return Listed(path, made, nearest=tuple(near), has_usdt=bool(known))


def _has(listed: Listed) -> str:
    if listed.nearest:
        return f"it has {some(listed.nearest)}"
    return "its USDT probes have other names" if listed.has_usdt else "it has no USDT probes, or no such function"


def _usdt(elf: ElfFile, probe: UsdtProbe) -> str:
    """``postgresql:query__start  1 argument (8@%rax)  1 place, switched on by a semaphore, about 1 µs a hit``."""
    arguments = probe.arguments
    told = f"{plural(len(arguments), 'argument')} ({' '.join(arguments)})" if arguments else "no arguments"
    places = plural(len(probe.sites), "place")
    if any(site.counter for site in probe.sites):
        places += ", switched on by a semaphore"
    cost = _COSTS[all(is_fast(elf, site.address) for site in probe.sites)]
    first = min(site.address for site in probe.sites)
    return f"{first:#014x}  {_shown(probe.title)}  {_shown(told)}  {places}, {cost} a hit"


def _of_kernel(chosen: Chosen) -> Iterator[str]:
    for name in chosen.tracepoints:
        found = [f"{field.name}: {field.type}" for field in fields(name)]
        more = f", {len(found) - _MORE_FIELDS} more" if len(found) > _MORE_FIELDS else ""
        yield f"t:{name}  {_joined(found[:_MORE_FIELDS]) or 'no fields'}{more}"
    why = "" if has_kprobes() else f"  no: {NO_KPROBES}"
    for name in chosen.functions:
        yield f"k:{printable(name)}{why}"


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(map(printable, texts))


def _shown(name: str) -> str:
    return printable(shortened(name, _LONGEST))
