"""Steps that are calls of Python functions: found in the processes' memory, and watched by hardware breakpoints."""

from __future__ import annotations

import difflib
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from .....converters.base.text import printable
from .....converters.base.units import duration, plural
from ....base import procfs
from ....cpython.functions import Function, Inside, function_at
from ....cpython.inside import inside_of
from ....cpython.layouts import Refused
from ....cpython.memory import memory_of
from ....cpython.runtime import may_be_interpreter
from ....cpython.search import Found, search
from ....images.elf import ElfError, ElfFile, FileSource
from ....images.files import open_mapped
from ....images.maps import Mapping as MappedFile
from ....kernel.bpfobject import Link, Object
from ....kernel.records import RECORD_STEP, RUNNING, Origin
from ....measures.steps import PythonSteps
from ....probe_targets.python_steps import PythonFunction
from ...rows import Row
from .probed import root_of
from .protocol import SCHEDULER, Collector, Ended
from .redefined import FreedPlace, Redefined
from .step_hits import (
    LOST_WRITES,
    MISSED_CHANGES,
    UNREADABLE_THREADS,
    Account,
    Call,
    Hit,
    StepHits,
    accounts,
    parse_hit,
)
from .watched import Watch, Watched, has_qualified_names

if TYPE_CHECKING:
    from .spans import CallSpans, Spans

_PROGRAM = "python_steps_hit"
_AT_FIRST = 5.0
"""Seconds in which a process is searched before the trace begins."""
_SLICE = 0.02
"""Seconds of one search in a process while the trace runs."""
_SHARE = 20
"""A process is searched again after this many times the time that it took."""
_PAUSE = 0.1
"""Least seconds between two searches in a process."""
_GONE = ("", "X", "Z")
"""States of processes that have ended."""
_SUGGESTIONS = 3
_KINDS = 1 << 12
"""Names that are kept to suggest some of them."""


class _Search:
    """Search of one process, again and again until a function is found."""

    def __init__(self, pid: int, inside: Inside, measure: PythonStepsCollector) -> None:
        self.pid, self._inside, self._measure = pid, inside, measure
        self._pieces: Iterator[list[Found]] = iter(())
        self._took, self._next = 0.0, 0.0
        self._has_found = False
        self.is_over = False

    def again(self) -> None:
        """Starts over, and at once: a function is missing."""
        self._pieces, self._next = iter(()), 0.0
        self.is_over = False

    def function_at(self, code: int) -> Function | None:
        """None if there is none now."""
        with suppress(OSError), memory_of(self.pid) as memory:
            return function_at(memory, self._inside, code)
        return None

    def go_on(self, until: float) -> bool:
        """Searches until then, or to the end; returns whether it came to the end."""
        now = time.monotonic()
        if self.is_over or now < self._next:
            return True
        with suppress(OSError):
            for found in self._pieces:
                for code, function in found:
                    self._has_found |= self._measure.consider(self.pid, code, function)
                if time.monotonic() >= until:
                    self._took += time.monotonic() - now
                    return False
        self._took += time.monotonic() - now
        self._next = time.monotonic() + max(self._took * _SHARE, _PAUSE)
        self._took = 0.0
        self.is_over = self._has_found and not self._measure.is_missing(self.pid)
        self._pieces = search(self.pid, self._inside, self._measure.is_in)
        return True

    def begin(self) -> None:
        """The first search."""
        self._pieces = search(self.pid, self._inside, self._measure.is_in)
        self.go_on(time.monotonic() + _AT_FIRST)


class PythonStepsCollector(Collector):
    """Has no rows: its result is the spans."""

    name = PythonSteps.name
    programs = SCHEDULER
    placed = (_PROGRAM,)

    def __init__(self, measure: PythonSteps) -> None:
        self.columns = measure.columns
        self._functions, self._options = tuple(measure.functions), measure.spans
        self._searches: dict[int, _Search] = {}
        self._tops: dict[int, int] = {}
        """Place of `Layout.thread_top`, by process."""
        self._watched: Watched | None = None
        self._hits: dict[tuple[int, int], StepHits] = {}
        self._freed: dict[tuple[int, int], FreedPlace] = {}
        """Places of code objects that are watched no more; the oldest first."""
        self._redefined = Redefined()
        self._past = Account()
        self._numbers: dict[Function, int] = {}
        """Numbers of functions that are watched, as the spans have them."""
        self._spans: Spans | None = None
        self._names: dict[str, None] = {}
        """Names of functions in the files that are not meant."""
        self._refused: Counter[str] = Counter()
        self._lost = self._traps = self._unclear = 0
        self._began: int | None = None
        self._late = 0
        """ns after the trace's begin when the last function was found."""

    def attach(self, loaded: Object, suffix: str) -> list[Link]:
        self._watched = Watched(loaded, _PROGRAM + suffix)
        return [self._watched]

    def mapped(self, pid: int, mapping: MappedFile) -> None:
        if not may_be_interpreter(mapping) or self._watched is None or self._watched.is_closed:
            return
        try:
            root = root_of(pid)
            try:
                fd = open_mapped(pid, mapping, root)
            finally:
                root.close()
            try:
                inside = inside_of(pid, mapping, ElfFile(FileSource(fd)))
            finally:
                os.close(fd)
        except (OSError, ValueError, ElfError):
            return
        except Refused as reason:
            self._refused[str(reason)] += 1
            return
        if inside and inside.code_type:
            self._tops[pid] = inside.layout.thread_top
            found = self._searches[pid] = _Search(pid, inside, self)
            if self._began is None:
                found.begin()

    def seeded(self) -> None:
        self._began = time.monotonic_ns()

    def consume(self) -> None:
        if self._began is None:
            return
        self._look_at_freed()
        until = time.monotonic() + _SLICE
        for found in list(self._searches.values()):
            if not found.go_on(until):
                return

    def saw_function(self, pid: int, code: int, function: Function) -> None:
        if self.is_in(function.file):
            self.consider(pid, code, function)

    def is_in(self, path: str) -> bool:
        """Whether a file has functions that are wanted."""
        return any(each.is_in(path) for each in self._functions)

    def consider(self, pid: int, code: int, function: Function) -> bool:
        """Watches a function of a process if it is wanted, and says whether it was."""
        is_qualified = has_qualified_names(function.version)
        wanted = [each for each in self._functions if each.is_in(function.file)]
        if not any(each.is_named(function.name, is_qualified=is_qualified) for each in wanted):
            if wanted and len(self._names) < _KINDS:
                self._names[function.name] = None
            return False
        top = self._tops.get(pid, 0)
        if (pid, code) in self._freed:
            return True  # its writes are kept
        if self._watched and not self._watched.is_closed and self._watched.is_full(pid):
            self._give_back(next((key for key in self._freed if key[0] == pid), None))
        if self._watched and self._watched.add(pid, code, function, top):
            self._begin(pid, code)
        return True

    def _begin(self, pid: int, code: int) -> None:
        """A function is watched from now on."""
        assert self._watched
        function, _, since = self._watched.watches[pid, code]
        self._numbers.setdefault(function._replace(lines=b""), len(self._numbers))
        is_again = self._redefined.watched(pid, function, since)
        if self._began is not None and not is_again:
            self._late = time.monotonic_ns() - self._began

    def is_missing(self, pid: int) -> bool:
        """Whether functions of a process were watched, and are not now."""
        return self._redefined.is_missing(pid)

    def _give_back(self, key: tuple[int, int] | None) -> None:
        """The breakpoint of a place that has no function; not if forked processes have one there."""
        if key is None or self._watched is None:
            return
        self._freed.pop(key, None)
        if not any(code == key[1] and pid != key[0] for pid, code in self._hits):
            self._watched.release(*key)

    def _was_freed(self, key: tuple[int, int], hits: StepHits, now: int) -> None:
        self._add(hits, hits.finish()[0])
        self._past = accounts([self._hits.pop(key)], self._past)
        self._freed[key] = FreedPlace()
        self._redefined.freed(key[0], hits.function, now)
        if key[0] in self._searches:
            self._searches[key[0]].again()

    def _look_at_freed(self) -> None:
        """Whether functions are again where others were."""
        for key, place in list(self._freed.items()):
            search_ = self._searches.get(key[0])
            function = search_.function_at(key[1]) if search_ else None
            if function and self._is_wanted(function):
                self._resume(key, place, function)
            elif place.is_strange:
                self._give_back(key)

    def _resume(self, key: tuple[int, int], place: FreedPlace, function: Function) -> None:
        if self._watched is None:
            return
        del self._freed[key]
        first = place.hits[0] if place.hits else None
        since = first.time if first else time.monotonic_ns()
        self._watched.put(*key, Watch(function, 1 if first else None, since))
        self._begin(*key)
        for hit in place.hits[1:]:
            self._take(hit)

    def _is_wanted(self, function: Function) -> bool:
        is_qualified = has_qualified_names(function.version)
        named = (each for each in self._functions if each.is_in(function.file))
        return any(each.is_named(function.name, is_qualified=is_qualified) for each in named)

    def on_record(self, data: bytes) -> bool:
        if data[0] != RECORD_STEP:
            return False
        self._traps += 1
        self._take(parse_hit(data))
        return True

    def _take(self, hit: Hit) -> None:
        key = hit.tgid, hit.code
        if place := self._freed.get(key):
            place.add(hit)
            return
        if key not in self._hits:
            found = self._watched.of(*key) if self._watched else None
            if found is None:
                self._unclear += 1
                return
            watch, is_own = found
            if is_own and hit.time < watch.since:
                return  # of what was there before
            self._hits[key] = StepHits(watch.function.version, watch.references if is_own else None, watch.function)
        hits = self._hits[key]
        if call := hits.take(hit):
            self._add(hits, [call])
        if hits.is_freed:
            self._was_freed(key, hits, hit.time)

    def _add(self, hits: StepHits, calls: Iterable[Call]) -> None:
        if self._spans is None:
            from .spans import Spans

            self._spans = Spans(self._options)
        number = self._numbers[hits.function._replace(lines=b"")]
        for call in calls:
            begin = call.hit
            self._spans.add(begin=call.begin, end=call.end, tid=begin.tid, life=begin.life, name=number)

    def read(self, loaded: Object) -> None:
        self._lost = loaded.find_map("lost_step_hits").lookup_percpu_u64(0)
        self._redefined.finish(time.monotonic_ns(), lambda pid: procfs.state(pid) not in _GONE)

    def rows(self, ended: Ended) -> list[Row]:
        return []

    def spans(self) -> CallSpans | None:
        from .....converters.model.scheduling import CallName
        from .spans import GoingOn, Spans

        still = []
        for hits in self._hits.values():
            ended, open_calls = hits.finish()
            self._add(hits, ended)
            number = self._numbers[hits.function._replace(lines=b"")]
            origins = ((each, Origin(0, 0, 0, each.tid, each.tgid, each.life, RUNNING)) for each in open_calls)
            still += [GoingOn(each.time, origin, number, 0) for each, origin in origins]
        if not self._numbers:
            return None
        titles = self._titles()
        times = [tuple(self._redefined.times(each)) for each in self._numbers]
        spans = self._spans or Spans(self._options)
        self._spans = None
        return spans.finish(lambda number: CallName(titles[number], "step", times[number]), still, self._lost)

    def _titles(self) -> list[str]:
        """Titles of the functions, by number. Those of the same name have their line."""
        names = [f"{os.path.basename(each.file)}:{each.name}" for each in self._numbers]
        lines = [f"{name} (line {each.first_line})" for name, each in zip(names, self._numbers, strict=True)]
        return [name if names.count(name) == 1 else line for name, line in zip(names, lines, strict=True)]

    def losses(self) -> Mapping[str, int]:
        account = accounts(self._hits.values(), self._past)
        return {
            LOST_WRITES: self._lost,
            MISSED_CHANGES: account.missed,
            UNREADABLE_THREADS: account.unreadable,
        }

    def remarks(self) -> Iterator[str]:
        if self._watched is None:
            return
        yield from self._watched.remarks(self._traps)
        if not self._watched.watches and not self._watched.refused:
            close = [near for each in self._functions for near in self._near(each)]
            has = f": there is {', '.join(map(printable, close))}" if close else ""
            named = ", ".join(printable(f"{each.file}:{each.name}") for each in self._functions)
            yield f"no traced process has a Python function {named}{has}"
        for reason, count in self._refused.items():
            yield f"no Python function of {plural(count, 'process')} is a step: {reason}"
        yield from self._redefined.remarks()
        if self._late:
            late = duration(self._late)
            yield f"a Python function was found {late} after the trace began: its steps before are missing"
        if uses := accounts(self._hits.values(), self._past).uses:
            yield (
                f"references to Python functions that were taken and not given back there: {uses:,}; calls that an "
                "exception left, looks at the function, or definitions of it: these are no steps"
            )
        if self._unclear:
            yield f"calls in forked processes that may be of one function or another: {self._unclear:,}"

    def _near(self, function: PythonFunction) -> list[str]:
        plain = {name.rpartition(".")[2]: name for name in self._names}
        return [plain[each] for each in difflib.get_close_matches(function.name, plain, _SUGGESTIONS)]
