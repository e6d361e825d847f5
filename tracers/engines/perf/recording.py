"""``perf record`` into a pipe, and ``perf script`` at its other end: nothing is written to a disk.

Between them is a process of our own: see `passing`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ....converters.base import helpers
from ....converters.base.errors import StallscopeError
from ....converters.base.text import printable
from ...base import privilege, procfs
from ...base.interrupts import Interrupts
from ...base.parent import end_with_parent
from ...kernel import tracefs
from ..protocol import EngineUnavailable
from . import passing
from .reasons import first_line, reason

if TYPE_CHECKING:
    import subprocess

_PARANOID = "/proc/sys/kernel/perf_event_paranoid"
LOWER = "sysctl kernel.perf_event_paranoid=1"
"""Command that lets ordinary users take all that perf can of their own processes."""
_PATIENCE = 60.0
"""Seconds for perf to begin, or to stop. On a busy machine it takes long to read the kernel's symbols."""
_ENVIRONMENT = {"PERF_CONFIG": "/dev/null", "PAGER": "cat", "HOME": "/nonexistent"}
"""Environment of perf. In HOME it would look for a cache of symbols."""
_READER = helpers.Rights(helpers.NOBODY.uid, helpers.NOBODY.gid, keeps=("dac_read_search", "syslog"))
"""Rights of perf script, which parses the traced files. It opens them by their names, also where only their owners may
read them: the one right that it cannot do without (CAP_DAC_READ_SEARCH). With CAP_SYSLOG it is shown the kernel's
addresses in /proc/kallsyms. It can write nothing, and has nobody to send anything to."""
_MEMORY = 8 << 30
"""Bytes of address space of perf script, which maps the files."""
_GRACE = 0.5
"""Seconds for perf to begin when the end was already requested."""
_INTERRUPTED = 130
"""The exit status of a command that Ctrl-C ended before there were results."""
_F_SETPIPE_SZ, _IN_PIPES = 1031, 1 << 20
"""fcntl.h; bytes of a pipe, as many as ordinary users may ask for: while one of the programs has no core, the others go
on, and perf record loses no events."""
_AT_ONCE = 1.0
"""Seconds that a program may take to end when it is killed: one that waits for a file system may not."""
_END_WITH_THIS = end_with_parent(signal.SIGKILL)
_NEEDED = ("--control", "--switch-events", "--clockid")
"""Options of perf record: perf 5.10 has all."""
SWITCH, ANY_SWITCH = "sched:sched_switch", "context-switches"
"""Events of a switch: the first has the thread's state, and is for those who may read tracepoints."""
_BUILD_IDS, _NO_BUILD_IDS = "buildid-mmap", "--no-buildid-mmap"
"""Options of perf record on build-ids in maps, for which it opens each file that a traced process maps, before the
trace begins. One on a file system whose server does not answer would keep it in the kernel. perf 6.17 asks for them
unless it is told not to."""
_NO_PERF = (
    "install it: apt-get install linux-perf (Debian), linux-tools-$(uname -r) (Ubuntu), dnf install perf (Fedora, RHEL)"
)


@dataclass(frozen=True)
class Rights:
    """Rights of this user to measure with perf."""

    level: int
    """kernel.perf_event_paranoid."""
    all: bool
    """Whether the level does not apply: root, or CAP_PERFMON."""

    @property
    def kernel(self) -> bool:
        """Whether events in the kernel are reported, such as switches, and stacks of the kernel."""
        return self.all or self.level < 2

    @property
    def tracepoints(self) -> bool:
        return (self.all or self.level < 0) and not self.no_tracefs

    @property
    def no_tracefs(self) -> str:
        """Reason why this user may not read tracepoints; "" where he may."""
        try:
            readable = os.access(tracefs.folder() / "events/sched/sched_switch/id", os.R_OK)
        except StallscopeError as error:
            return error.cause
        return "" if readable else "this user may not read tracepoints"


def rights() -> Rights:
    """EngineUnavailable when the kernel has no perf events at all, or none for this user."""
    try:
        with open(_PARANOID) as file:
            level = int(file.read())
    except (OSError, ValueError):
        raise EngineUnavailable(
            f"this kernel has no perf events: there is no {_PARANOID}", "use another engine"
        ) from None
    found = Rights(level, privilege.may_measure())
    if not found.all and level > 2:
        raise EngineUnavailable(
            f"kernel.perf_event_paranoid is {level}: this system's users may not use perf",
            f"{LOWER}, or run it as root",
            needs=LOWER,
        )
    return found


class Tool(NamedTuple):
    """The program, and options that it needs."""

    path: str
    options: tuple[str, ...] = ()


def find_perf() -> Tool:
    """A perf that works. EngineUnavailable otherwise."""
    path = helpers.find_program("perf")
    if path is None:
        raise EngineUnavailable("there is no perf", _NO_PERF)
    try:
        found = helpers.run([path, "record", "-h"], seconds=_PATIENCE, environment=_ENVIRONMENT)
    except OSError as error:
        raise EngineUnavailable(f"perf does not run: {printable(str(error))}", _NO_PERF) from None
    said = (found.output + found.errors).decode(errors="replace")
    if "Usage: perf record" not in said and "usage: perf record" not in said:
        raise EngineUnavailable(f"perf does not run: {first_line(said)}", _NO_PERF)
    if lacking := [option for option in _NEEDED if option not in said]:
        raise EngineUnavailable(f"this perf is too old: it has no {lacking[0]}", "use perf of Linux 5.10 or newer")
    return Tool(path, (_NO_BUILD_IDS,) if _BUILD_IDS in said else ())


def start(perf: Tool, record: Sequence[str], fields: str, interrupts: Interrupts) -> Recording:
    """A recording that is ready to begin. EngineUnavailable with what perf says if there is none; StallscopeError if
    Ctrl-C ends it before."""
    made = Recording(perf.path, [*perf.options, *record], fields)
    try:
        made.ready(interrupts)
    except BaseException:
        made.close()
        raise
    return made


class Recording:
    """The processes. They are in a session of their own, for Ctrl-C not to reach them, and end with this one."""

    def __init__(self, perf: str, record: Sequence[str], fields: str) -> None:
        """``record``: options that say what is recorded of whom. It is recorded from `enable` on."""
        control_read, self._control = os.pipe2(os.O_CLOEXEC)
        self._ack, ack_write = os.pipe2(os.O_CLOEXEC)
        self.notices, told = os.pipe2(os.O_CLOEXEC)
        """Descriptor of what the process between them tells (see `passed`); it does not wait."""
        os.set_blocking(self.notices, False)
        _widen(told)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._passing = 0
        """The id of the process between them, until it is reaped."""
        self._passed = 0
        """Exit status of the process between them, -N where signal N ended it."""
        self._script: subprocess.Popen[bytes] | None = None
        self._is_late = False
        self._is_asked = False
        """Whether we have ended perf record."""
        self._is_given_up = False
        environment, own = _ENVIRONMENT, tracefs.own_mount()
        if own is not None:  # else perf would mount one, for the whole host
            environment = {**environment, "TRACEFS_PATH": str(tracefs.folder())}
        kept = () if own is None else (own,)
        control = ["-D", "-1", "--control", f"fd:{control_read},{ack_write}"]
        try:
            self._record = helpers.start(
                [perf, "record", "-o", "-", "-k", "CLOCK_MONOTONIC", "--switch-events", *control, *record],
                stdout=helpers.PIPE,
                stderr=self._said,
                environment=environment,
                fds=(control_read, ack_write, *kept),
                prepare=_END_WITH_THIS,
            )
        finally:
            os.close(control_read)
            os.close(ack_write)
        show = ["--show-switch-events", "--show-task-events", "--show-lost-events"]
        assert self._record.stdout
        passed, target = os.pipe2(os.O_CLOEXEC)
        _widen(self._record.stdout.fileno())
        _widen(target)
        self._passing = passing.start(self._record.stdout.fileno(), target, told, _END_WITH_THIS)
        os.close(target)
        os.close(told)
        self._script = helpers.start(
            [perf, "script", "-i", "-", "--no-inline", "--ns", *show, "-F", fields],
            rights=_READER,
            limits=helpers.Limits(memory=_MEMORY),
            stdin=passed,
            stdout=helpers.PIPE,
            stderr=self._said,
            environment=_ENVIRONMENT,
        )
        self._record.stdout.close()
        os.close(passed)
        assert self._script.stdout
        self.text = self._script.stdout.fileno()
        """Descriptor of what perf script prints."""
        _widen(self.text)

    def ready(self, interrupts: Interrupts) -> None:
        """Waits until perf has opened its events. EngineUnavailable with what perf says if it does not; StallscopeError
        if Ctrl-C ends the wait."""
        if not self._tell(b"disable\n", interrupts):
            raise self._failed("trace your own processes, or run it as root; see trace-doctor")

    def enable(self, interrupts: Interrupts) -> int:
        """Begins to record; returns when: CLOCK_MONOTONIC ns. Errors like those of `ready`."""
        began = time.monotonic_ns()
        if not self._tell(b"enable\n", interrupts):
            raise self._failed("trace-doctor says what perf needs")
        return began

    def stop(self, *, is_over: bool = False) -> int:
        """Stops; returns when: CLOCK_MONOTONIC ns. What was recorded, also a little later, is still to be read.

        It does not wait for perf record, which may itself wait until what it has written is read; unless ``is_over``,
        since the text has ended: then perf record is about to end by itself.
        """
        ended = time.monotonic_ns()
        if is_over and self._script and self._script.wait() == 0 and self._reap() == 0:
            helpers.wait(self._record, _PATIENCE)
        if self._record.poll() is None:
            self._record.send_signal(signal.SIGINT)
            self._is_asked = True
        return ended

    @property
    def is_held(self) -> bool:
        """Whether perf record waits in the kernel for what no signal but SIGKILL ends, such as a file that does not
        answer."""
        return procfs.state(self._record.pid) == "D"

    def _tell(self, command: bytes, interrupts: Interrupts) -> bool:
        """Whether perf has done it. StallscopeError if Ctrl-C ends the wait."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, command)
            until = time.monotonic() + _PATIENCE
            while time.monotonic() < until:
                has_ended = self._record.poll() is not None  # it may have answered before
                if select.select([self._ack], [], [], 0.05)[0]:
                    return bool(os.read(self._ack, 64))
                if has_ended:
                    return False
                if interrupts.requested:
                    until = min(until, time.monotonic() + _GRACE)
            if interrupts.requested:
                raise StallscopeError("ended before the trace began: perf record was not ready", exit_code=_INTERRUPTED)
            self._is_late = True
        return False

    def _failed(self, otherwise: str) -> EngineUnavailable:
        """Error for what it did not do. ``otherwise``: the remedy for what is not known."""
        if self._is_late:
            return EngineUnavailable(f"perf record did not answer within {_PATIENCE:g} s", "trace-doctor says more")
        if (status := self._record.poll()) is not None and status < 0:
            how = _signal(-status)
            return EngineUnavailable(f"perf record was ended by {how} before the trace began", "trace again")
        return EngineUnavailable(*reason(self._words(), otherwise))

    def _words(self) -> str:
        self._said.seek(0)
        return self._said.read(1 << 14).decode(errors="replace")

    def ended_early(self, given_up: str) -> str:
        """Text on how the recording ended before its end; "" otherwise. After `stop` and the end of `text`, unless that
        was not waited for (``given_up`` says why): then all is ended. StallscopeError if perf script failed."""
        if given_up:
            self.give_up()
            return given_up
        if error := self.failure():
            raise error
        return self.cut()

    def failure(self) -> StallscopeError | None:
        """Error with which perf script ended, if it is one. After the end of `text`."""
        assert self._script
        status = self._script.wait()
        if status < 0:
            return StallscopeError(f"perf script was ended by {_signal(-status)}", "trace again")
        others = (self._record.wait(), self._reap())
        if not status or (any(each < 0 and each != -signal.SIGPIPE for each in others) and self.cut()):
            return None  # `cut` tells it; perf script complains of what was left unfinished
        return StallscopeError(f"perf script failed with status {status}: {first_line(self._words())}")

    def cut(self) -> str:
        """Text on how perf record, or the process behind it, ended, if neither we nor the end of its targets ended it;
        "" otherwise. After `stop` and the end of `text`."""
        status = self._record.wait()
        if passed := self._reap():
            how = f"was ended by {_signal(-passed)}" if passed < 0 else "failed"
            return f"the process between perf record and perf script {how}"
        if status == 0 or (self._is_asked and (status > 0 or status == -signal.SIGINT)):
            return ""
        return f"perf record was ended by {_signal(-status)}" if status < 0 else f"perf record failed: status {status}"

    def _reap(self) -> int:
        """Status with which the process between them has ended; waits for it."""
        self._close_notices()
        if self._passing:
            self._passed = os.waitstatus_to_exitcode(os.waitpid(self._passing, 0)[1])
            self._passing = 0
        return self._passed

    def _close_notices(self) -> None:
        """The process between them does not wait for us any more."""
        if self.notices >= 0:
            os.close(self.notices)
            self.notices = -1

    def give_up(self) -> None:
        """Ends all, however they hang, and at once: nothing more is known of how they ended. What waits in the kernel
        and does not end is left alone."""
        if self._is_given_up:
            return
        self._is_given_up = True
        processes = [each for each in (self._script, self._record) if each]
        for process in processes:
            process.kill()
        until = time.monotonic() + _AT_ONCE
        for process in processes:
            helpers.wait(process, max(until - time.monotonic(), 0))

    def close(self) -> None:
        """Ends all."""
        self.give_up()
        if self._passing:
            os.kill(self._passing, signal.SIGKILL)  # it may have ended, but nobody has reaped it
        self._reap()
        if self._script and self._script.stdout:
            self._script.stdout.close()
        for fd in (self._control, self._ack):
            os.close(fd)
        self._said.close()


def _signal(number: int) -> str:
    """Name of a signal; those of real time have none."""
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _widen(pipe: int) -> None:
    """Users have a limit for all of their pipes (fs.pipe-user-pages-soft): then it stays as it is."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe, _F_SETPIPE_SZ, _IN_PIPES)
