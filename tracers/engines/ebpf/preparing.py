"""Loads unwind tables before a trace begins, so that its first stacks are complete."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ....converters.base.errors import StallscopeError
from ....converters.base.text import printable
from ....converters.base.units import plural
from ...base import procfs
from ...base.programs import programs
from ...images import maps
from ...images.needed import needed
from ...symbols.process import ProcessSpaces
from .measures.protocol import Collector

if TYPE_CHECKING:
    from ...base.interrupts import Interrupts
    from ...base.launch import Launch
    from ...base.progress import Progress
    from ...base.scope import Scope
    from ...unwind.compiling import State
    from .unwinding import Unwinding

PATIENCE = 60.0
"""Maximum seconds that tables may delay a trace of given processes, or of a command."""
BRIEF = 1.0
"""Maximum seconds that tables may delay a trace of the whole host: other tables come during the trace."""
READING = 20.0
"""Seconds for loading tables compiled earlier, for the whole host even beyond `BRIEF`."""
OF_USER = 1 << 12
"""Files of one user's processes for which a trace of the whole host waits."""
AWAITED = 1 << 10
"""Files of given processes for which a trace waits longer than `BRIEF`: one with everything in it maps many hundred."""
_READING, _COMPILING = "mapped files were still being read", "unwind tables were still being prepared"
_INTERRUPTED = 130
"""The exit status of a command that Ctrl-C ended before there were results."""
_STEP, _SLICE = 0.1, 0.05
"""Seconds between two looks at process events; of these, seconds for reading mappings."""
_LOOK = 1.0
"""Seconds between two searches for new processes in the scope."""


def line(state: State) -> str:
    """The progress, for a terminal."""
    name = printable(os.path.basename(state.at_work))
    return f"compiling unwind tables: {state.ready} of {plural(state.asked, 'file')}, {name} …"


class Preparation:
    """Reads mappings, asks for tables and waits for them."""

    def __init__(
        self,
        unwinding: Unwinding,
        spaces: ProcessSpaces,
        scope: Scope,
        follow: Callable[[], None],
        *,
        wait: bool = True,
    ) -> None:
        """``follow`` handles the process events since the last time. Without ``wait`` tables are only asked for."""
        self.modules: Sequence[str] = ()
        """Libraries that the measures expect a command to open."""
        self._is_patient = wait
        now = time.monotonic()
        self._until = now + ((BRIEF if scope.everything else PATIENCE) if wait else 0)
        self._end_of_reading = now + (READING if wait else 0)
        self._unwinding = unwinding
        self._spaces = spaces
        self._scope = scope
        self._follow = follow
        self._began = now
        self._to_take: deque[int] = deque()
        self._doing = _READING
        """Work that is waited for."""
        self._next_look = 0.0

    def run(self, launch: Launch | None, interrupts: Interrupts, progress: Progress | None) -> None:
        """Asks for the tables of all first processes, or of the command that ``launch`` holds, and waits for them.

        Ctrl-C begins the trace at once for a user whom ``progress`` told what is waited for. For others it is the end:
        StallscopeError.
        """
        if interrupts.requested:
            return
        self._unwinding.loader.is_over = lambda: interrupts.requested
        if launch:
            self.command(launch.command, os.environ)
        elif self._scope.everything:
            self.everything(self._until, interrupts)
        else:
            self.targets()
        self.wait(self._until, interrupts, progress.show if progress else lambda _line: None)
        if self._is_patient and interrupts.take() and not (progress and progress.is_seen):
            raise StallscopeError(
                f"ended by SIGINT before the trace began: {self._doing}{self._spaces.most_files()}",
                "give --no-wait to begin without them; on a terminal, Ctrl-C does that",
                exit_code=_INTERRUPTED,
            )

    def command(self, words: list[str], environ: Mapping[str, str]) -> None:
        """Requests tables for what a command, held before its exec, will map."""
        self._unwinding.expect_vdso()
        seen: set[str] = set()
        for program in programs(words, environ):
            for path in needed(program.path, program.environ, with_modules=True, also=self.modules):
                if path not in seen:
                    seen.add(path)
                    self._unwinding.expect_file(path)

    def targets(self) -> None:
        """Queues the processes of the scope in the order of their ids."""
        scope = self._scope
        self._to_take.extend(sorted(scope.tgids | {tgid for tid in scope.tids if (tgid := procfs.tgid_of(tid))}))

    def everything(self, until: float, interrupts: Interrupts) -> None:
        """Requests tables for all processes, the most shared first. ``until``: when to stop reading.

        A user whose processes map very many files waits for the rest of them until the trace runs.
        """
        until = max(until, self._end_of_reading)
        pids = [pid for pid in sorted(procfs.pids()) if pid != os.getpid()]
        users: Counter[tuple[int, int] | str] = Counter()
        first: dict[tuple[int, int] | str, tuple[int, maps.Mapping]] = {}
        files: Counter[int] = Counter()
        later: set[int] = set()
        for pid in pids:
            if time.monotonic() >= until or interrupts.requested:
                break
            process = self._spaces.adopt(pid)
            if not process:
                continue
            found = {each.key: each for each in process.space if each.is_file}
            new = found.keys() - first.keys()
            if process.uid and files[process.uid] + len(new) > OF_USER:
                later.add(pid)
                continue
            files[process.uid] += len(new)
            users.update(found.keys())
            for key, mapping in found.items():
                first.setdefault(key, (pid, mapping))
        for key, count in users.most_common():
            if time.monotonic() >= until or interrupts.requested:
                break  # those of most processes are asked for; others follow with their processes
            self._unwinding.loader.expect(*first[key], count)
        self._to_take.extend(pid for pid in pids if pid in self._spaces.processes and pid not in later)

    def wait(self, until: float, interrupts: Interrupts, show: Callable[[str], None]) -> None:
        """Waits for the requested tables until ``until`` (time.monotonic()), or an interrupt.

        Tables that need no compiling are waited for longer.
        """
        loader = self._unwinding.loader
        while not interrupts.requested:
            self._look()
            now = time.monotonic()
            state = loader.state
            if not self._scope.everything and state.asked > AWAITED:
                until = min(until, self._began + BRIEF)
                self._end_of_reading = until
            rest = until - now
            if not self._to_take and (loader.idle or (rest <= 0 and loader.compiles_only)):
                return
            if rest <= 0 and now >= self._end_of_reading:
                return
            if not self._to_take:
                self._doing = _COMPILING
                loader.wait(min(max(rest, _SLICE), _STEP))
            if state.at_work:
                show(line(state))
            elif self._to_take:
                show(f"reading what is mapped: {plural(len(self._to_take), 'process')} to go …")

    def _look(self) -> None:
        now = time.monotonic()
        if self._scope.grows and now >= self._next_look:
            self._next_look = now + _LOOK
            self._scope.ours |= self._unwinding.loader.pids
            newcomers = self._scope.newcomers()
            self._scope.tgids |= newcomers
            self._to_take.extend(sorted(newcomers))
        while self._to_take and time.monotonic() < now + _SLICE:
            pid = self._to_take.popleft()
            if pid in self._spaces.processes or self._spaces.adopt(pid):
                self._unwinding.loader.read(pid)
        self._follow()
        self._unwinding.poll()


def check_start(launch: Launch | None, interrupts: Interrupts) -> None:
    """StallscopeError if the command is not to be started any more."""
    if launch and interrupts.requested:
        raise StallscopeError(
            "ended by a signal before the command was started",
            "nothing was traced: run it again",
            exit_code=_INTERRUPTED,
        )


def expect_files(command: list[str], environ: Mapping[str, str], collectors: Iterable[Collector]) -> None:
    """Tells the measures which files a command will map."""
    listening = [collector for collector in collectors if type(collector).expect is not Collector.expect]
    for program in programs(command, environ) if listening else ():
        path = os.path.realpath(program.path)
        for collector in listening:
            for file in needed(path, program.environ, also=collector.modules):
                collector.expect(file, is_program=file == path)
