"""A whole trace with SystemTap, from a command's options to its profile."""

from __future__ import annotations

import os
import select
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ....converters.base.errors import StallscopeError
from ....converters.base.rights import sudo_owner
from ....converters.base.safefile import create
from ....converters.readers.stap.lines import VERSION, Lines
from ...base import procfs
from ...base.interrupts import Interrupts
from ...base.launch import Launch, ending
from ...base.progress import Progress
from ...base.scope import Scope
from ...images.files import HOST
from ...images.maps import read_maps
from ...images.needed import needed
from ...kernel.sampled_events import CLOCK
from ...measures.calls import Calls
from ...measures.ioctl import Ioctl
from ...measures.offcpu import OffCpu
from ...measures.oncpu import OnCpu
from ...measures.protocol import Measure, find
from ...measures.wakeup import WakeUp
from ...outside.reads import is_copy
from ..asleep import Asleep
from ..ends import Ends
from ..named_rows import NamedRows, refuse
from ..protocol import Engine, EngineUnavailable, Outcome, Request
from .choice import How
from .compiling import Source, compile_module, find_stap, scripts_of
from .described import described
from .folders import find_headers
from .functions import Chosen, Function, check, choose
from .module_file import ModuleFile, refusal, without_probe
from .running import Running, find_staprun
from .taking import LEFT_OUT, Taking

_SCRIPTS: Mapping[type, str] = {OffCpu: "offcpu", OnCpu: "oncpu", Ioctl: "ioctl", WakeUp: "wakeup", Calls: "cuda"}
"""The script of each measure."""
_MOST_LIST = 4000
"""Characters of the list of processes, which is a parameter of the module."""
_READ = 1 << 18
_SILENCE = 10.0
"""Seconds. SystemTap itself waits two seconds for lines that come out of order."""
_LONGEST_STOP = 60.0
_POLL = 0.1


@dataclass(frozen=True)
class Stap(Engine):
    """The scripts of ``stap/``, compiled to a module that is loaded for the trace."""

    how: How = field(default_factory=How)
    name: str = "stap"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Stap:
        """Makes the engine from the values of a command's options. StallscopeError for one of them."""
        return cls(How.of(given))

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        refused = {
            measure.name: f"the engine stap has no script for {measure.name}"
            for measure in measures
            if type(measure) not in (*_SCRIPTS, *LEFT_OUT)
        }
        calls, samples = find(measures, Calls), find(measures, OnCpu)
        if calls and calls.over:
            refused[calls.name] = "the engine stap has no --over"
        if samples and not samples.by_clock:
            refused[samples.name] = f"the engine stap samples by {CLOCK} only"
        return refused

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        try:
            find_staprun()
            if not self.how.module:
                find_stap()
                find_headers(self.how.build, only_compiles=self.how.write is not None)
        except EngineUnavailable as error:
            return error
        return None

    def instead(self, request: Request, command: str) -> str | None:
        """``--stap-compile-only``: writes the module for ``command``."""
        if not self.how.write:
            return None
        if os.path.lexists(self.how.write):
            raise StallscopeError(f"{self.how.write} exists already", "name a new file")
        find_headers(self.how.build, only_compiles=True)
        request.scope.resolve()
        source = self._source(request)
        with Progress() as progress:
            made = compile_module(source, progress.show)
        with create(self.how.write, owner=sudo_owner()) as output:
            output.write(made.read_bytes())
        return f"{self.how.write}: {described(source, command)}"

    def trace(self, request: Request) -> Outcome:
        refuse(self.name, request)
        staprun = find_staprun()
        with Interrupts() as interrupts:
            launch = Launch(list(request.command), quiet=request.quiet) if request.command else None
            try:
                request.scope.resolve()
                self._settings(request.scope, launch)  # whether it can be traced at all
                given = self._given(request)
                module = given or ModuleFile.read(self._compiled(request, interrupts))
                request.scope.resolve()  # compiling took its time
                settings = self._settings(request.scope, launch)
                functions, remarks = self._functions(request, given)
                asleep = Asleep(user=self.how.user_stacks, kernel=self.how.kernel_stacks)
                running = Running(staprun, module, settings)
                try:
                    taking_of = partial(
                        Taking,
                        measures=request.measures,
                        functions=functions,
                        asleep=asleep,
                        launched=launch.pid if launch else 0,
                    )
                    taken = _run(request, running, taking_of, launch, interrupts)
                    profile = taken.profile(request.measures, request.what)
                    profile.comments += remarks
                finally:
                    running.close()
                    asleep.close()
                status = None if interrupts.requested or not launch else launch.poll()
                if status:
                    profile.comments.insert(0, ending(status))
                return Outcome(profile, (f"SystemTap: module {module.path.name}",), status)
            finally:
                if launch:
                    launch.stop()

    def _compiled(self, request: Request, interrupts: Interrupts) -> Path:
        def show(text: str) -> None:
            progress.show(text)
            if interrupts.requested:
                raise StallscopeError("ended while SystemTap compiled: nothing was traced", "give it some minutes")

        with Progress() as progress:
            return compile_module(self._source(request), show)

    def _given(self, request: Request) -> ModuleFile | None:
        """The module of ``--stap-module``. StallscopeError if it takes other measures: what it lacks would be shown as
        nothing."""
        if not self.how.module:
            return None
        module = ModuleFile.read(self.how.module)
        has, needed = scripts_of(module.name), _scripts(request.measures)
        if not needed <= has:
            raise StallscopeError(
                f"{module.path} was compiled for another command: it has {' and '.join(sorted(has))}, but not "
                f"{' and '.join(sorted(needed - has))}",
                "compile it with this command: --stap-compile-only",
            )
        return module

    def _functions(self, request: Request, given: ModuleFile | None) -> tuple[dict[str, Function], Sequence[str]]:
        """Functions that are timed, and what is to be said of them. ``given``: a module that was compiled before."""
        calls = find(request.measures, Calls)
        if calls is None:
            return {}, ()
        try:
            chosen = self._chosen(request, calls, self.how.files)
        except EngineUnavailable:
            if not given:
                raise
            chosen = Chosen(())  # which files the targets will map is not known yet
        if given:
            chosen = check(given, calls.wanted, chosen)
        return chosen.shown(calls.wanted), chosen.remarks

    def _source(self, request: Request) -> Source:
        scripts = sorted(_scripts(request.measures))
        samples = find(request.measures, OnCpu)
        files = dict.fromkeys(map(os.path.realpath, self.how.files))
        if self.how.user_stacks:
            pids = {*request.scope.tgids, *(procfs.tgid_of(tid) or tid for tid in request.scope.tids)}
            files |= dict.fromkeys(_mapped(pids))
            if request.command and (program := shutil.which(request.command[0])):
                files |= dict.fromkeys(needed(program, os.environ))
        calls = find(request.measures, Calls)
        chosen = self._chosen(request, calls, files) if calls else Chosen((), ())
        files |= dict.fromkeys(path for path, _ in chosen.functions)
        frequency = (str(samples.frequency),) if samples else ()
        return Source(tuple(scripts), frequency, tuple(files), self.how.build, chosen.functions)

    def _chosen(self, request: Request, calls: Calls, files: Iterable[str]) -> Chosen:
        """The functions, as far as the files are known now."""
        own = {path for pid in request.scope.tgids if (path := _program_of(pid))}
        named = [shutil.which(request.command[0]) or ""] if request.command else []
        own |= {os.path.realpath(each) for each in (*named, *self.how.files) if ".so" not in os.path.basename(each)}
        mapped = dict.fromkeys((*files, *_mapped(set(request.scope.tgids))))
        return choose(calls.wanted, tuple(mapped), own)

    def _settings(self, scope: Scope, launch: Launch | None) -> dict[str, str | int]:
        """The script's variables. EngineUnavailable for a scope that it cannot follow."""
        pids, tids = sorted({launch.pid} if launch else scope.tgids), sorted(scope.tids)
        if not pids and not tids and not scope.everything:
            raise EngineUnavailable(
                "there is no process to trace yet, and the engine stap cannot wait", "start it first"
            )
        lists = {"pids": "all" if scope.everything else ",".join(map(str, pids)), "tids": ",".join(map(str, tids))}
        if any(len(each) > _MOST_LIST for each in lists.values()):
            raise EngineUnavailable(f"{len(pids) + len(tids):,} targets are too many for a module", "trace all: -a")
        return {
            **{name: each for name, each in lists.items() if each},
            "without": str(os.getpid()),
            "children": int(scope.children),
            "user_stacks": int(self.how.user_stacks),
            "kernel_stacks": int(self.how.kernel_stacks),
        }


def _scripts(measures: Iterable[Measure]) -> set[str]:
    return {_SCRIPTS[type(measure)] for measure in measures if type(measure) in _SCRIPTS}


def _mapped(pids: set[int]) -> list[str]:
    """Files with code that the processes have mapped, most used first."""
    users: dict[str, int] = {}
    known: dict[str, bool] = {}
    for pid in pids:
        try:
            paths = {each.path for each in read_maps(pid) if each.is_file}
        except OSError:
            continue
        for path in paths - known.keys():
            known[path] = _can_be_read(path)
        paths = {path for path in paths if known[path]}
        for path in paths:
            users[path] = users.get(path, 0) + 1
    return sorted(users, key=lambda path: (-users[path], path))


def _program_of(pid: int) -> str:
    """The path of its program, as the kernel has it; "" when it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def _can_be_read(path: str) -> bool:
    """Whether there is a file, on a file system that cannot make SystemTap wait for an ordinary user."""
    try:
        fd = HOST.open_regular(path)
    except (OSError, ValueError):
        return False
    try:
        return not is_copy(fd)
    finally:
        os.close(fd)


@dataclass
class _Stream:
    """Stream that the script prints, and where it goes."""

    running: Running
    lines: Lines
    taking: Taking
    progress: Progress
    ended: int = 0
    """Time when the trace has ended, CLOCK_MONOTONIC ns; 0: it goes on."""

    def read(self) -> bool:
        """Takes what is there; waits for it. Returns whether more can come."""
        data = os.read(self.running.text, _READ)
        self.taking.take(data, self.ended)
        self.show()
        return bool(data)

    def show(self) -> None:
        threads = self.taking.threads
        self.progress.update(threads=len(threads.names), stacks=self.lines.number, lost=threads.lost["intervals"])

    def check_probes(self) -> None:
        """StallscopeError if no function has a probe: that no call is seen would say nothing."""
        timed = self.running.module.functions
        if timed and timed <= without_probe(words := self.running.words()):
            raise refusal(words)

    def read_to_stop(self) -> None:
        """Reads until all events have been told; not longer than something comes. What is then missing is counted as
        lost.

        It asks again: SystemTap skips an event, this one too, where it does not get its locks.
        """
        began = asked = heard = time.monotonic()
        while not self.lines.stopped and (now := time.monotonic()) < min(began + _LONGEST_STOP, heard + _SILENCE):
            if select.select([self.running.text], [], [], _POLL)[0]:
                heard = now
                if not self.read():
                    return
            if now > asked + 1:
                asked = now
                self.running.stop()


def _run(
    request: Request,
    running: Running,
    taking_of: Callable[[Lines], Taking],
    launch: Launch | None,
    interrupts: Interrupts,
) -> NamedRows:
    """``taking_of`` takes the lines of the trace, after the first one."""
    lines = Lines()
    ends = Ends(request.scope, launch)
    try:
        first = list(lines.feed(running.first()))
        while not lines.version and (data := os.read(running.text, _READ)):
            first += lines.feed(data)
        if lines.version != VERSION:
            raise EngineUnavailable(
                f"the module speaks version {lines.version} of the lines, not {VERSION}", "compile it anew"
            )
        taking = taking_of(lines)
        if sleeping := _known(request.scope, launch, taking):
            running.ask_registers(sleeping)
        for line in first:
            taking.line(line)
        if launch and not interrupts.requested:
            launch.go()
        with Progress(request.duration) as progress:
            stream = _Stream(running, lines, taking, progress)
            _follow(stream, ends, interrupts, request.duration)
            stream.ended = ended = time.monotonic_ns()
            if running.stop():
                stream.read_to_stop()
            stream.ended = ended = lines.stopped or ended
            running.end()
            while stream.read():
                pass
        stream.check_probes()
        return taking.taken(request, running.words(), ended)
    finally:
        ends.close()


def _known(scope: Scope, launch: Launch | None, taking: Taking) -> list[int]:
    """Tells which threads there are; returns those that sleep."""
    pids = set(procfs.pids()) - {os.getpid()} if scope.everything else set(scope.tgids)
    pairs = [(pid, tid) for pid in {launch.pid} if launch for tid in (pid,)] if launch else []
    pairs = pairs or [(pid, tid) for pid in pids for tid in procfs.tids(pid)]
    pairs += [(procfs.tgid_of(tid) or tid, tid) for tid in scope.tids]
    sleeping = []
    for pid, tid in pairs:
        if letter := procfs.state(tid):
            taking.threads.known(pid, tid, letter, procfs.comm(pid, tid))
            sleeping += [tid] * (letter != "R")
    taking.conditions.look_soon(dict.fromkeys(pid for pid, _ in pairs))
    return sleeping


def _follow(stream: _Stream, ends: Ends, interrupts: Interrupts, duration: float | None) -> None:
    """Follows the stream until the trace is to end."""
    until = time.monotonic() + duration if duration is not None else None
    while not interrupts.requested and not ends.reached():
        left = _POLL if until is None else min(_POLL, until - time.monotonic())
        if left <= 0:
            return
        stream.show()  # also where nothing happens
        stream.check_probes()
        ends.wait(interrupts.wakeup, left, [stream.running.text])
        if select.select([stream.running.text], [], [], 0)[0] and not stream.read():
            return  # the script has ended
