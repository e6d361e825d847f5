"""The one command that would show more than the first sentence of a summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..facts.identity import kernel_ids
from ..facts.wait_kinds import CHILD, EVENTS, HALTED, HELD, LOCK, PEER, SLEEP, THREAD
from ..model.next_step import (
    ALL_THAT_RUNS,
    HAS_CORES,
    HOW_OFTEN,
    PATH,
    REST,
    RUNS_TOO,
    WHAT_ENDERS_DO,
    WHICH_IOCTLS,
    WHO_ENDS,
    WHO_ENDS_IN_CALLS,
    WHO_WAKES,
    WHOLE_STACKS,
    NextStep,
    Whom,
)
from ..rules.finding import CPU
from ..rules.verdict import DRIVER
from .answer import NO_WAIT, Answer
from .core_takers import OTHERS, UNCLEAR
from .figures import Process, Wait

_FEW = 4
"""Maximum number of processes given by id."""
_RUNS_OR_WAITS_FOR_IT = (CPU, NO_WAIT, THREAD, PEER, CHILD)
"""Kinds of first sentences for which a lack of cores may be the cause."""
MINOR_CALLS = 0.1
"""Calls that take less of the threads' time are not what the threads wait for."""
_MUCH = 0.1
"""Others that have the cores are looked for from this share of the threads' time on."""
_MUCH_BESIDE_RUNNING = 0.3
"""The same if the threads mostly run, and nobody knows in which functions."""
WHEN = ("-d", "2", "-o", "when.pftrace")
"""What asks for a timeline."""
_A_WHILE = ("-d", "5")
_EVERYTHING = Whom(("-a",))
_FOR_OTHERS = (LOCK, THREAD, PEER, CHILD, EVENTS)
"""Kinds of waits that somebody ends who can be named."""
_BESIDE_SLEEP = 0.2
"""Who ends other waits is asked from this share of their threads' time on, even if the threads sleep for longer."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
"""Names that need no escaping in a shell or regular expression."""


def next_command(
    told: Answer,
    has_samples: bool,
    processes: Sequence[Process],
    waits: Sequence[Wait] = (),
    chosen: Whom | None = None,
) -> NextStep | None:
    """None if no command shows more. ``has_samples``: what runs is known already. ``processes``: all traced. ``waits``:
    theirs. ``chosen``: the user's own choice of these processes, if there is one that chooses them again."""
    if not processes or told.kind == HALTED:
        return None
    if not told.deadlock and (others := _who_has_the_cores(told, has_samples, waits)):
        return others
    tool, options, tells = _shows(told, has_samples, waits)
    return NextStep(tool, scope_of(processes, chosen), options, tells)


def _who_has_the_cores(told: Answer, has_samples: bool, waits: Sequence[Wait]) -> NextStep | None:
    """A trace of the whole host, if others had the cores for which the threads wait."""
    much = _MUCH_BESIDE_RUNNING if told.kind == CPU and not has_samples else _MUCH
    if told.kind not in _RUNS_OR_WAITS_FOR_IT or not _others_had_the_cores(waits, much):
        return None
    return NextStep("trace-wall" if has_samples else "trace-offcpu", _EVERYTHING, _A_WHILE, HAS_CORES)


def _shows(told: Answer, has_samples: bool, waits: Sequence[Wait]) -> tuple[str, tuple[str, ...], str]:
    """The command that shows more, its options, and what it tells."""
    if told.deadlock:
        return "trace-offcpu", ("-d", "1", "--per-thread", "-o", "stacks.html"), WHOLE_STACKS
    asks_who = told.kind in _FOR_OTHERS or (told.kind == SLEEP and _waits_for_others(waits))
    if not asks_who and told.kind in (CPU, NO_WAIT, SLEEP) and not has_samples:
        return "trace-wall", _A_WHILE, RUNS_TOO
    if told.judged == DRIVER:
        return "trace-ioctl", _A_WHILE, WHICH_IOCTLS
    if asks_who or told.kind == HELD:
        return "trace-wakeup", _A_WHILE, WHO_ENDS
    if told.kind in (CPU, NO_WAIT):
        return "trace-oncpu", (*_A_WHILE, "-o", "cpu.html"), ALL_THAT_RUNS
    return "trace-offcpu", WHEN, WHO_WAKES


def after_wakers(
    step: NextStep | None,
    processes: Sequence[Process],
    chosen: Whom | None,
    victim: int = 0,
    untraced: Sequence[int] = (),
) -> NextStep | None:
    """What to recommend instead of ``step`` if it is known already who ends the waits. ``victim``: the thread (its id)
    that waits; 0 if none stands out. ``untraced``: processes that end most of the waits, and were not traced."""
    if not step or step.tells not in (WHO_WAKES, WHO_ENDS):
        return step
    whom, pids = scope_of(processes, chosen), kernel_ids(pid for process in processes for pid in process.pids)
    if whom == _EVERYTHING or not pids:
        return after_path(step, processes, chosen)  # whose path would it be?
    if untraced:
        return NextStep("trace-wakeup", _with_others(whom, untraced), _A_WHILE, WHAT_ENDERS_DO)
    whose = "command" if whom.command else str(victim or min(pids))  # parents come before their children
    return NextStep("trace-wakeup", whom, (*_A_WHILE, "--critical", whose), PATH)


def after_samples(
    step: NextStep | None, told: Answer, target: str, processes: Sequence[Process], chosen: Whom | None
) -> NextStep | None:
    """What to recommend instead of ``step`` if it is known what runs. ``target``: the function that most of the running
    time is in (`hot_function.hot_function`); "" if there is none."""
    if not step or not target or told.kind not in (CPU, "") or step.tells not in (WHO_WAKES, ALL_THAT_RUNS):
        return step
    whom = scope_of(processes, chosen)
    return NextStep("trace-func", whom, _A_WHILE, HOW_OFTEN, (target,))


def after_calls(share_of_time: float, serialised: bool, whom: Whom) -> NextStep | None:
    """The same for a profile of calls. ``share_of_time``: of the threads' time that is in calls."""
    if share_of_time < MINOR_CALLS:
        return NextStep("trace-offcpu", whom, _A_WHILE, REST)
    if serialised:
        return NextStep("trace-wakeup", whom, _A_WHILE, WHO_ENDS_IN_CALLS)
    return None


def scope_of(processes: Sequence[Process], chosen: Whom | None) -> Whom:
    """How to choose the processes again."""
    return chosen or _scope(processes)


def victim_of(told: Answer, blames: int) -> int:
    """The thread whose path tells most. ``blames``: the thread that waits longest for who is blamed; 0 if nobody is."""
    return told.victim if told.kind in _FOR_OTHERS and told.victim else blames or told.victim


def after_path(step: NextStep | None, processes: Sequence[Process], chosen: Whom | None) -> NextStep | None:
    """The same if a critical path is known, too."""
    if not step or step.tells != WHO_ENDS:
        return step
    return NextStep("trace-offcpu", scope_of(processes, chosen), WHEN, WHO_WAKES)


def _with_others(whom: Whom, pids: Sequence[int]) -> Whom:
    """These processes, too; the whole host if they cannot be added."""
    if whom.command or len(pids) > _FEW or whom.options[:1] != ("-p",) or whom.options[2:] not in ((), ("--children",)):
        return _EVERYTHING
    return Whom(("-p", ",".join((whom.options[1], *map(str, pids))), *whom.options[2:]))


def _others_had_the_cores(waits: Sequence[Wait], much: float) -> bool:
    longest = max((wait for wait in waits if wait.runnable), key=lambda wait: wait.time, default=None)
    if not longest or not longest.takers or longest.time < much * longest.threads_wall:
        return False
    return longest.takers.kind in (OTHERS, UNCLEAR)


def _waits_for_others(waits: Sequence[Wait]) -> bool:
    """Whether threads that are not idle wait for much of their time for somebody who can be named."""
    wanted = [wait for wait in waits if wait.kind in _FOR_OTHERS and wait.kind != EVENTS]
    return any(not (wait.idle or wait.still) and wait.time >= _BESIDE_SLEEP * wait.threads_wall > 0 for wait in wanted)


def _scope(processes: Sequence[Process]) -> Whom:
    pids = kernel_ids(pid for process in processes for pid in process.pids)
    if pids and len(pids) <= _FEW and not any(process.ended for process in processes):
        return Whom(("-p", ",".join(map(str, pids))))
    first = processes[0]
    name = first.command or first.name
    alike = len(processes) == 1 or all(process.command == name for process in processes)
    return Whom(("-n", f"^{name}$")) if alike and _PLAIN.fullmatch(name) else _EVERYTHING
