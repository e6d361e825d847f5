"""Events that the user names: ``u:FILE:NAME`` (USDT probes), ``t:SYSTEM:EVENT`` (tracepoints), ``k:FUNCTION``
(functions of the kernel), and with --count the entries of functions. Names are patterns, as those of `Target`."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from .targets import Program, Target, Targets, expression, libraries
from .wanted import LETTERS, Library

USDT, TRACEPOINT, KERNEL = "u", "t", "k"
KINDS = (USDT, TRACEPOINT, KERNEL)
_SUGGESTIONS = 3


class Chosen(NamedTuple):
    """Tracepoints and functions of the kernel that the user named, as the kernel has them."""

    tracepoints: Sequence[str] = ()
    functions: Sequence[str] = ()


@dataclass(frozen=True)
class Named(Library):
    """A name without a folder: of a program, or of a library without ``.so``."""

    def is_file(self, path: str, identity: tuple[int, int]) -> bool:
        name = os.path.basename(path)
        return name.startswith(f"{self.path}.so") or Program(self.path).is_file(path, identity)


@dataclass(frozen=True)
class EventTarget:
    """``text``: as the user gave it. ``groups``: the provider, or the tracepoint's system; it has to match, too."""

    text: str
    kind: str
    libraries: tuple[Library, ...]
    groups: LETTERS
    pattern: LETTERS

    @classmethod
    def parse(cls, text: str) -> EventTarget:
        """ValueError for a wrong one; OSError for a path without a file."""
        kind, _, rest = text.partition(":")
        if kind == USDT:
            file, _, names = rest.partition(":")
            if not file or not names:
                raise ValueError(
                    f"{text!r} is not u:FILE:NAME or u:FILE:PROVIDER:NAME, such as u:postgres:query__start"
                )
            given = libraries(file)
            if "/" not in file and ".so" not in file:
                given = (Named(file), *given)
            group, name = _split(names)
            return cls(text, kind, given, _pattern(group or "*", text), _pattern(name, text))
        if kind == TRACEPOINT:
            group, name = _split(rest)
            if not group or not name:
                raise ValueError(f"{text!r} is not t:SYSTEM:EVENT, such as t:sched:sched_process_exec")
            return cls(text, kind, (), _pattern(group, text), _pattern(name, text))
        if not rest or ":" in rest.removeprefix("re:"):
            raise ValueError(f"{text!r} is not k:FUNCTION, such as k:vfs_read")
        return cls(text, KERNEL, (), _pattern("*", text), _pattern(rest, text))

    @property
    def name(self) -> str:
        """Name that the user gave, without the kind and the file."""
        return self.text.split(":", 2 if self.kind == USDT else 1)[-1]

    def is_file(self, path: str, identity: tuple[int, int]) -> bool:
        """Whether its probes are those of this file."""
        return any(library.is_file(path, identity) for library in self.libraries)

    def matches(self, group: str, name: str) -> bool:
        """Whether a probe of this provider or system is meant."""
        return bool(self.groups.search(group) and self.pattern.search(name))


@dataclass(frozen=True)
class Events(Targets):
    """The events of ``events``, and the entries of the functions of ``targets``: all can have a probe."""

    events: tuple[EventTarget, ...] = ()
    returns: bool = True
    option: ClassVar[str] = "a TARGET"

    @classmethod
    def all_of(cls, targets: Iterable[Target], events: Iterable[EventTarget]) -> Events:
        """Both kinds."""
        targets, events = tuple(targets), tuple(events)
        found = [library for target in targets for library in target.libraries]
        found += [library for event in events for library in event.libraries]
        return cls(libraries=tuple(dict.fromkeys(found)), targets=targets, events=events)

    @property
    def are_of_kernel(self) -> bool:
        """Whether they are functions of the kernel, and nothing else."""
        return not self.targets and {event.kind for event in self.events} == {KERNEL}

    def of_kind(self, kind: str) -> tuple[EventTarget, ...]:
        return tuple(event for event in self.events if event.kind == kind)

    def has_functions(self, path: str, identity: tuple[int, int]) -> bool:
        """Whether functions of this file are meant."""
        return any(target.is_file(path, identity) for target in self.targets)

    def has_usdt(self, path: str, identity: tuple[int, int]) -> bool:
        """Whether USDT probes of this file are meant."""
        return any(event.is_file(path, identity) for event in self.events)

    def wants_usdt(self, provider: str, name: str, path: str, identity: tuple[int, int]) -> bool:
        """Whether a USDT probe of this file is meant."""
        return any(event.matches(provider, name) for event in self.events if event.is_file(path, identity))

    def can_return(self, name: str) -> bool:
        """Always true: the return of what is only counted is not watched."""
        return True


def nearest(targets: Iterable[EventTarget], names: Iterable[str]) -> list[str]:
    """Names, as ``group:name``, that are nearly what one of the targets asks for."""
    given, found = list(names), list[str]()
    short: dict[str, list[str]] = {}
    for name in given:
        short.setdefault(name.rpartition(":")[2], []).append(name)
    for target in targets:
        text = target.name.strip("/*^$")
        found += difflib.get_close_matches(text, given, _SUGGESTIONS)
        close = difflib.get_close_matches(text.rpartition(":")[2], short, _SUGGESTIONS)
        found += [name for each in close for name in short[each]]
    return list(dict.fromkeys(found))[:_SUGGESTIONS]


def is_event(text: str) -> bool:
    """Whether an argument names an event, and not a function of a file."""
    return text.partition(":")[0] in KINDS


def _split(names: str) -> tuple[str, str]:
    """Group and name. A name alone, and a regular expression, have no group."""
    if names.startswith(("re:", "/")):
        return "", names
    group, colon, name = names.partition(":")
    return (group, name) if colon else ("", names)


def _pattern(names: str, text: str) -> LETTERS:
    try:
        return re.compile(expression(names))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} has no regular expression: {error}") from None
