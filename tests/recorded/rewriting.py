"""Profiles with other frames, ids and names, in all of their parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from stallscope.converters.model import Frame, Labels, Profile, Sample, Stack, ThreadTimes, parts
from stallscope.converters.model.wakers import SEPARATOR, links, own_part

_WAKER = re.compile(r"(.*)-(\d{1,10})((?: [A-Z_0-9]+)?)", re.DOTALL)
"""Name of a waker that is no interrupt: its process and the thread's id."""
LIVES = (("pid", 0), ("tid", 0), ("pid-life", 1), ("tid-life", 1))
"""Labels that tell whose a sample is, and what is meant where they are missing."""
_IDS = ("pid", "tid", "creator")
_FUNCTIONS = {
    *(("GilThread", "frames"), ("LockThread", "frames"), ("LockPlace", "frames"), ("StepRun", "frames")),
    *(("Site", "frames"), ("Steps", "name"), ("CallTimes", "name"), ("CallTimes", "locks")),
}
"""Texts of parts that are the names of functions, as a summary shows them."""


def _same(value: Any, *_: object) -> Any:
    return value


@dataclass(frozen=True)
class Rewriting:
    """Replacements for each frame, id and text. Those that are not given stay."""

    frame: Callable[[Frame], Frame] = _same
    ident: Callable[[int], int] = _same
    process: Callable[[str], str] = _same
    thread: Callable[[str, str, bool], str] = _same
    """Replaces the name of a thread. Arguments: the name, that of its process, and whether it is the main thread."""
    function: Callable[[str], str] = _same
    """Replaces a function's name, as a summary shows it."""
    script: Callable[[str], str] = _same
    """Replaces the name of what an interpreter runs."""


def rewritten(profile: Profile, by: Rewriting) -> Profile:
    """Samples and all other parts."""
    stacks = _Stacks(by)
    labels: dict[Labels, Labels] = {}
    samples = []
    for stack, values, given in profile.samples:
        if given not in labels:
            labels[given] = _labels(given, stack, by)
        samples.append(Sample(stacks.of(stack), values, labels[given]))
    return replace(profile, samples=samples, **_parts(profile, by))


class _Stacks:
    """Stacks by the identity of stacks and frames, which a capture's samples share."""

    def __init__(self, by: Rewriting) -> None:
        self._by = by
        self._stacks: dict[int, Stack] = {}
        self._frames: dict[int, Frame] = {}

    def of(self, stack: Stack) -> Stack:
        if id(stack) not in self._stacks:
            own = own_part(stack)
            found = [*map(self._frame, own)]
            for link in links(stack):
                found += [SEPARATOR, *map(self._frame, link[:-1]), link[-1]._replace(name=self._waker(link[-1].name))]
            self._stacks[id(stack)] = tuple(found)
        return self._stacks[id(stack)]

    def _frame(self, frame: Frame) -> Frame:
        if id(frame) not in self._frames:
            self._frames[id(frame)] = self._by.frame(frame)
        return self._frames[id(frame)]

    def _waker(self, name: str) -> str:
        return waker_name(name, self._by)


def waker_name(name: str, by: Rewriting) -> str:
    """``train-4711``; an interrupt's stays."""
    match = None if name.endswith("]") else _WAKER.fullmatch(name)
    return f"{by.process(match[1])}-{by.ident(int(match[2]))}{match[3]}" if match else name


def _labels(labels: Labels, stack: Stack, by: Rewriting) -> Labels:
    found = dict(labels)
    process, waker = str(found.get("process", "")), str(found.get("waker", ""))
    is_main = _is_main(*(int(found.get(key, default)) for key, default in LIVES))
    for key, value in labels:
        if key in ("pid", "tid", "waker_tid"):
            found[key] = by.ident(int(value))
        elif key == "process":
            found[key] = by.process(process)
        elif key == "thread":
            found[key] = by.thread(str(value), process, is_main)
        elif key == "waker":
            found[key] = waker_name(waker, by)
        elif key == "waker_thread":
            found[key] = by.thread(str(value), *_of_waker(waker, dict(labels).get("waker_tid")))
        elif key == "chain_tids":
            found[key] = " ".join(str(by.ident(int(tid))) for tid in str(value).split(" "))
        elif key == "chain_thread":
            tids = str(dict(labels).get("chain_tids", "0")).split(" ")
            named = [link[-1].name for link in links(stack) if not link[-1].name.endswith("]")]
            found[key] = by.thread(str(value), *_of_waker(named[-1] if named else "", int(tids[-1])))
    return tuple(sorted(found.items()))


def _is_main(pid: int, tid: int, pid_life: int = 1, tid_life: int = 1) -> bool:
    """Threads that are added up have no ids, main threads among them the same life as their process."""
    return pid == tid and (tid != 0 or pid_life == tid_life)


def is_main(times: ThreadTimes) -> bool:
    """Whether it is a process's main thread, or several of them."""
    return _is_main(times.pid, times.tid, times.pid_life, times.tid_life)


def _of_waker(name: str, tid: object) -> tuple[str, bool]:
    match = _WAKER.fullmatch(name)
    return (match[1], int(match[2]) == tid) if match else (name, False)


def _parts(profile: Profile, by: Rewriting) -> dict[str, Any]:
    known = {times.tid: times for times in profile.threads}

    def text_of(owner: str, field: str, text: str, part: Any) -> str:
        what = parts.TEXTS[owner, field]
        if what == parts.PROCESS:
            return by.process(text)
        if what == parts.THREAD:
            of = part if hasattr(part, "pid") else known.get(part.tid)
            if of is None:
                return by.thread(text, "", False)
            lives = getattr(of, "pid_life", 1), getattr(of, "tid_life", 1)
            return by.thread(text, of.process, _is_main(of.pid, of.tid, *lives))
        if (owner, field) == ("ProcessTimes", "script"):
            return by.script(text)
        return by.function(text) if (owner, field) in _FUNCTIONS else text

    return {
        name: [with_ids(parts.with_texts(part, text_of), by.ident) for part in getattr(profile, name)]
        for name in parts.NAMES
    }


def with_ids(part: Any, ident: Callable[[int], int]) -> Any:
    """A part with other ids, those of all that it consists of included."""
    if ident is _same:
        return part
    changed: dict[str, Any] = {}
    for name in parts.field_names(part):
        value = getattr(part, name)
        if name in _IDS:
            changed[name] = ident(value)
        elif isinstance(value, list) and value and is_dataclass(value[0]):
            changed[name] = [with_ids(each, ident) for each in value]
    return replace(part, **changed) if is_dataclass(part) else part._replace(**changed)
