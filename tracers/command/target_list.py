"""Functions that match the targets, before anything is attached: checked before a trace, and printed by ``--list``."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import NamedTuple

from ...converters.base.errors import StallscopeError
from ...converters.base.text import printable, shortened
from ...converters.base.units import plural
from ..base import procfs
from ..base.scope import Scope
from ..engines.ebpf.measures.probed import MOST_PROBES, root_of, unfit
from ..images.elf import SHT_SYMTAB, ElfError, ElfFile, FileSource
from ..images.files import HOST, open_mapped
from ..images.functions import find_functions, function_names
from ..images.maps import read_maps
from ..images.needed import needed
from ..probe_targets.entries import CODE, entry
from ..probe_targets.targets import Target, Targets
from .arguments import parameters

_LONGEST = 120
"""Characters of a name."""
_COSTS = {True: "about 2 µs", False: "about 12 µs"}
"""Cost of a call with its probe, by whether the kernel emulates the instruction: docs/cuda.md has the measurement."""
_NO_RETURN = "no: its return must not be watched"
_ONLY_CPP = "no: an exception could leave it (--cpp)"


class Match(NamedTuple):
    """A function that is meant. ``address``: as `nm` prints it. ``why_not``: it gets no probe; "" if it does.
    ``arguments``: as debug information has them, None without it."""

    name: str
    address: int
    is_fast: bool
    why_not: str
    arguments: tuple[str, ...] | None = None


class Listed(NamedTuple):
    """A file with targets. ``problem``: why none of its functions can have a probe; ``nearest``: names of its
    functions, if none matches. ``is_stripped``: it has no names but those that it exports."""

    path: str
    matches: list[Match]
    problem: str = ""
    nearest: tuple[str, ...] = ()
    is_stripped: bool = False


def check(targets: Targets) -> None:
    """StallscopeError if a file that is there has no function for one of the targets."""
    for target in targets.targets:
        (first, *others) = target.libraries
        if first.identity and not others:
            _check_file(target, _read_path(first.path, Targets.of([target], returns=targets.returns)))


def check_mapped(targets: Targets, scope: Scope, command: tuple[str, ...]) -> None:
    """StallscopeError if files of a target are mapped by processes of the scope, or will be by the command, and none of
    them has a function for it that can have a probe. A file that is not known yet may come later."""
    try:
        scope.resolve()
    except StallscopeError:
        return  # the trace tells
    for target in targets.targets:
        known = _without_probes(Targets.of([target], returns=targets.returns), scope, command)
        if known:
            _check_file(target, known[0])


def _without_probes(targets: Targets, scope: Scope, command: tuple[str, ...]) -> list[Listed]:
    """The files of the targets; none if one of them has a function that can have a probe, or cannot be judged."""
    found: dict[tuple[int, int], Listed] = {}
    opened = opened_files(targets, scope, command)
    try:
        for path, fd in opened:
            status = os.fstat(fd)
            identity = status.st_dev, status.st_ino
            if identity not in found:
                found[identity] = _read(fd, path, targets)
            os.close(fd)
            listed = found[identity]
            if listed.problem or any(not match.why_not for match in listed.matches):
                return []
    finally:
        opened.close()
    return list(found.values())


def _check_file(target: Target, listed: Listed) -> None:
    shown = printable(listed.path)
    if listed.problem:
        raise StallscopeError(
            f"{shown}: {printable(listed.problem)}", "give a 64-bit library or program that is not of Go", exit_code=2
        )
    if not listed.matches:
        has = (
            f"it has {', '.join(map(_shown, listed.nearest))}"
            if listed.nearest
            else f"`nm -DC {shown}` lists what it has"
        )
        why = ": it is stripped, so that it has no names but those that it exports" if listed.is_stripped else ""
        raise StallscopeError(
            f"{shown} has no function for {target.text!r}{why}",
            f"{has}; one that is not stripped has the names of all" if why else has,
            exit_code=2,
        )
    probes = sum(not match.why_not for match in listed.matches)
    if probes > MOST_PROBES:
        raise StallscopeError(
            f"{shown}: {probes:,} functions match, and {MOST_PROBES:,} can have probes",
            "give a narrower pattern: --list shows what matches",
            exit_code=2,
        )
    if not probes:
        first = listed.matches[0]
        remedy = "--list shows which functions can be traced"
        if first.why_not == _ONLY_CPP:
            remedy = "--cpp traces it nevertheless: be sure that no exception or panic leaves it"
        raise StallscopeError(
            f"{shown}: a probe on the return of {_shown(first.name)} could end the program", remedy, exit_code=2
        )


def lines(targets: Targets, scope: Scope | None, command: tuple[str, ...]) -> Iterator[str]:
    """Lines that ``--list`` prints. StallscopeError for a scope that does not exist, and when nothing matches."""
    files = list(_files(targets, scope, command))
    if not files:
        raise StallscopeError(
            "no file of that name is mapped, or where the loader looks", "give a path, or -p of a process that maps it"
        )
    for listed in files:
        yield printable(listed.path)
        yield from (f"  {line}" for line in _lines_of(listed))
    probes = [match for listed in files for match in listed.matches if not match.why_not]
    found = sum(len(listed.matches) for listed in files)
    if not found:
        raise StallscopeError("no function matches", "patterns are those of the shell: 'libc.so.6:*lock*'")
    slow = sum(not match.is_fast for match in probes)
    yield (
        f"{plural(found, 'function')} of {plural(len(files), 'file')}: {len(probes):,} can have a probe"
        f"{f', {slow:,} of them on an instruction that the kernel steps through' if slow else ''}"
    )


def _lines_of(listed: Listed) -> Iterator[str]:
    if listed.problem:
        yield f"not traced: {printable(listed.problem)}"
    elif not listed.matches:
        has = f": it has {', '.join(map(_shown, listed.nearest))}" if listed.nearest else ""
        yield f"no function matches{has}"
    for match in listed.matches:
        probe = match.why_not or f"yes, {_COSTS[match.is_fast]} a call"
        arguments = f"  ({_shown(', '.join(match.arguments))})" if match.arguments is not None else ""
        yield f"{match.address:#014x}  {_shown(match.name)}{arguments}  probe: {probe}"


def _shown(name: str) -> str:
    return printable(shortened(name, _LONGEST))


def _files(targets: Targets, scope: Scope | None, command: tuple[str, ...]) -> Iterator[Listed]:
    """The files of the targets: those that processes of the scope map; else those that the loader would find."""
    seen: set[tuple[int, int]] = set()
    for path, fd in opened_files(targets, scope, command):
        try:
            status = os.fstat(fd)
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield _with_arguments(fd, _read(fd, path, targets))
        finally:
            os.close(fd)


def opened_files(
    targets: Targets, scope: Scope | None, command: tuple[str, ...]
) -> Generator[tuple[str, int], None, None]:
    """Paths and descriptors of the files that are given: those that processes of the scope map, or that the loader
    would find."""
    if scope and not command:
        scope.resolve()
        pids = (
            set(procfs.pids()) if scope.everything else scope.tgids | {procfs.tgid_of(tid) or 0 for tid in scope.tids}
        )
        for pid in sorted(pids):
            yield from _mapped(targets, pid)
        return
    import shutil
    import sys

    programs = [shutil.which(command[0]) or command[0]] if command else [sys.executable]
    names = [library.path for library in targets.libraries]
    given = [library.path for library in targets.libraries if library.identity and not command]
    for path in (*given, *(path for program in programs for path in needed(program, os.environ, also=names))):
        try:
            fd = HOST.open_regular(path)
        except (OSError, ValueError):
            continue
        status = os.fstat(fd)
        if targets.is_given(path, (status.st_dev, status.st_ino)):
            yield path, fd
        else:
            os.close(fd)


def _mapped(targets: Targets, pid: int) -> Iterator[tuple[str, int]]:
    """Files of the targets that a process maps. One that has ended, or that we may not look into, has none."""
    try:
        mappings = [each for each in read_maps(pid) if each.is_file]
    except OSError:
        return
    for each in mappings:
        if not targets.is_given(each.file_path, (each.dev, each.inode)):
            continue
        root = root_of(pid)
        try:
            fd = open_mapped(pid, each, root)
        except (OSError, ValueError):
            continue
        finally:
            root.close()
        yield each.file_path, fd


def _read_path(path: str, targets: Targets) -> Listed:
    try:
        fd = HOST.open_regular(path)
    except (OSError, ValueError) as error:
        return Listed(path, [], str(error))
    try:
        return _read(fd, path, targets)
    finally:
        os.close(fd)


def _read(fd: int, path: str, targets: Targets) -> Listed:
    status = os.fstat(fd)
    identity = status.st_dev, status.st_ino
    try:
        elf = ElfFile(FileSource(fd))
        if why := unfit(elf):
            return Listed(path, [], why)
        names = function_names(elf)
        targets.learn(path, identity, lambda: names)
        found = find_functions(
            elf, lambda name: targets.wants(name, path, identity) or targets.is_unsafe(name, path, identity), CODE
        )
    except ElfError as error:
        return Listed(path, [], str(error))
    matches = []
    for function in found:
        at = entry(function.code)
        address = address_in(elf, function.offset)
        matches.append(Match(targets.readable(function.name), address, at.is_fast, _why_not(targets, function.name)))
    is_stripped = not any(table["type"] == SHT_SYMTAB and table["size"] for table in elf.sections)
    return Listed(path, matches, "", () if matches else tuple(targets.nearest(names)), is_stripped)


def _with_arguments(fd: int, listed: Listed) -> Listed:
    """Adds what debug information says of the functions."""
    if not listed.matches:
        return listed
    known = parameters(fd, ElfFile(FileSource(fd)), listed.path, [match.address for match in listed.matches])
    matches = [
        match._replace(arguments=None if each.fault else each.shown)
        for match, each in zip(listed.matches, known, strict=True)
    ]
    return listed._replace(matches=matches)


def _why_not(targets: Targets, name: str) -> str:
    if targets.can_return(name):
        return ""
    return _ONLY_CPP if Targets(returns=True).can_return(name) else _NO_RETURN


def address_in(elf: ElfFile, offset: int) -> int:
    """The address of code at this offset of the file."""
    return next(s.vaddr + offset - s.offset for s in elf.segments if 0 <= offset - s.offset < s.filesz)
