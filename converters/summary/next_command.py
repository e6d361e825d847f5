"""The one command that would show more than the first sentence of a summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..facts import thresholds
from ..facts.identity import kernel_ids
from ..facts.wait_functions import COLLECTIVE
from ..facts.wait_kinds import CHILD, EVENTS, HALTED, HELD, LOCK, PEER, SLEEP, THREAD
from ..model.next_step import (
    ALL_RANKS,
    ALL_THAT_RUNS,
    HAS_CORES,
    HOW_OFTEN,
    PATH,
    REST,
    RUNS_TOO,
    WHAT_ENDERS_DO,
    WHAT_HOLDER_DOES,
    WHAT_OTHERS_DO,
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

_RUNS_OR_WAITS_FOR_IT = (CPU, NO_WAIT, THREAD, PEER, CHILD)
"""Kinds of first sentences for which a lack of cores may be the cause."""
WHEN = ("-d", "2", "-o", "when.pftrace")
"""Options that ask for a timeline."""
_A_WHILE = ("-d", "5")
_EVERYTHING = Whom(("-a",))
_FOR_OTHERS = (LOCK, THREAD, PEER, CHILD, EVENTS)
"""Kinds of waits that somebody ends who can be named."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
"""Names that need no escaping in a shell or regular expression."""
_SCRIPT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9]+)*")
"""Names of scripts and programs in which only dots need escaping."""


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
    if told.judged == COLLECTIVE and not told.explained and (ranks := _ranks(processes, chosen)):
        return NextStep("trace-wall", ranks, _A_WHILE, ALL_RANKS)
    if culprit := _culprit(told, processes):
        return culprit
    whom = scope_of(processes, chosen)
    if told.is_endless and whom != _EVERYTHING:
        return NextStep("trace-wall", _EVERYTHING, _A_WHILE, WHAT_OTHERS_DO)
    tool, options, tells = _shows(told, has_samples, waits)
    return NextStep(tool, whom, options, tells)


def _culprit(told: Answer, processes: Sequence[Process]) -> NextStep | None:
    """A trace of the process that was not traced, and has the lock or the other end for which the first sentence's
    threads wait; None if it is not known."""
    if told.holder and not told.deadlock:
        return NextStep("trace-wall", Whom(("-p", str(told.holder))), _A_WHILE, WHAT_HOLDER_DOES)
    if not told.explained and (peer := _other_end(told, processes)):
        return NextStep("trace-wall", Whom(("-p", str(peer))), _A_WHILE, WHAT_ENDERS_DO)
    return None


def _other_end(told: Answer, processes: Sequence[Process]) -> int:
    """The one process for which the first sentence's threads wait, if it was not traced; 0 if it is not known."""
    finding = told.told[0].finding if told.told else None
    if finding is None or finding.kind != PEER or finding.on is None:
        return 0
    ends = [end.pid for end in finding.on.ends]
    traced = kernel_ids(pid for process in processes for pid in process.pids)
    return ends[0] if len(ends) == 1 and not finding.on.what.more_ends and ends[0] not in traced else 0


def _who_has_the_cores(told: Answer, has_samples: bool, waits: Sequence[Wait]) -> NextStep | None:
    """A trace of the whole host, if others had the cores for which the threads wait."""
    much = thresholds.CORES_ASKED_BESIDE_RUNNING if told.kind == CPU and not has_samples else thresholds.CORES_ASKED
    if told.names_takers or told.kind not in _RUNS_OR_WAITS_FOR_IT or not _others_had_the_cores(waits, much):
        return None
    return NextStep("trace-wall" if has_samples else "trace-offcpu", _EVERYTHING, _A_WHILE, HAS_CORES)


def _shows(told: Answer, has_samples: bool, waits: Sequence[Wait]) -> tuple[str, tuple[str, ...], str]:
    """The command that shows more, its options, and what it tells."""
    if told.deadlock:
        return "trace-offcpu", ("-d", "1", "--per-thread", "-o", "stacks.html"), WHOLE_STACKS
    asks_who = told.kind in _FOR_OTHERS or (told.kind == SLEEP and _waits_for_others(waits))
    if not asks_who and told.kind in (CPU, NO_WAIT, SLEEP) and not has_samples:
        return "trace-wall", _A_WHILE, RUNS_TOO
    if told.judged == DRIVER and told.kind != LOCK:  # who has a lock tells more
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
    """Recommends another step than ``step`` if it is known already who ends the waits. ``victim``: the thread (its id)
    that waits; 0 if none stands out. ``untraced``: processes that end most of the waits, and were not traced."""
    if not step or step.tells not in (WHO_WAKES, WHO_ENDS, WHAT_OTHERS_DO):
        return step
    whom, pids = scope_of(processes, chosen), kernel_ids(pid for process in processes for pid in process.pids)
    if whom == _EVERYTHING or not pids:
        return after_path(step, processes, chosen)  # whose path would it be?
    if untraced:
        return NextStep("trace-wakeup", _with_others(whom, untraced), _A_WHILE, WHAT_ENDERS_DO)
    if step.tells == WHAT_OTHERS_DO:
        return step
    whose = "command" if whom.command else str(victim or min(pids))  # parents come before their children
    return NextStep("trace-wakeup", whom, (*_A_WHILE, "--critical", whose), PATH)


def after_samples(
    step: NextStep | None, told: Answer, target: str, processes: Sequence[Process], chosen: Whom | None
) -> NextStep | None:
    """Recommends another step than ``step`` if it is known what runs. ``target``: the function that most of the running
    time is in (`hot_function.hot_function`); "" if there is none."""
    if not step or not target or told.kind not in (CPU, "") or step.tells not in (WHO_WAKES, ALL_THAT_RUNS):
        return step
    whom = scope_of(processes, chosen)
    return NextStep("trace-func", whom, _A_WHILE, HOW_OFTEN, (target,))


def after_calls(share_of_time: float, serialised: bool, whom: Whom) -> NextStep | None:
    """Recommends a step after a profile of calls. ``share_of_time``: of the threads' time that is in calls."""
    if share_of_time < thresholds.MINOR_CALLS:
        return NextStep("trace-offcpu", whom, _A_WHILE, REST)
    if serialised:
        return NextStep("trace-wakeup", whom, _A_WHILE, WHO_ENDS_IN_CALLS)
    return None


def scope_of(processes: Sequence[Process], chosen: Whom | None) -> Whom:
    """Options that choose the processes again."""
    return chosen or _scope(processes)


def victim_of(told: Answer, blames: int) -> int:
    """The thread whose path tells most. ``blames``: the thread that waits longest for who is blamed; 0 if nobody is."""
    return told.victim if told.kind in _FOR_OTHERS and told.victim else blames or told.victim


def after_path(
    step: NextStep | None, processes: Sequence[Process], chosen: Whom | None, untraced: Sequence[int] = ()
) -> NextStep | None:
    """Recommends another step than ``step`` if a critical path is known, too. ``untraced``: a process that most of the
    path goes to, and that was not traced."""
    if not step or step.tells != WHO_ENDS:
        return step
    if untraced:
        return NextStep("trace-wakeup", _with_others(scope_of(processes, chosen), untraced), _A_WHILE, WHAT_ENDERS_DO)
    return NextStep("trace-offcpu", scope_of(processes, chosen), WHEN, WHO_WAKES)


def _with_others(whom: Whom, pids: Sequence[int]) -> Whom:
    """Adds these processes to the choice, which stays: the answer is to be about them. The whole host if a command was
    chosen, or there are many."""
    if whom.command or len(pids) > thresholds.PIDS_IN_COMMAND:
        return _EVERYTHING
    added = ",".join(map(str, pids))
    if whom.options[:1] == ("-p",):
        return Whom(("-p", f"{whom.options[1]},{added}", *whom.options[2:]))
    return Whom(("-p", added, *whom.options))


def _ranks(processes: Sequence[Process], chosen: Whom | None) -> Whom | None:
    """All processes that run the same; None if they are traced, or have no name that can be put into a command."""
    if chosen and chosen.options[:1] != ("-p",):
        return None
    names = {each.name.removeprefix(each.command).strip().rpartition(" ")[2] for each in processes}
    name = names.pop()
    return None if names or not _SCRIPT.fullmatch(name) else Whom(("-n", name.replace(".", "\\.")))


def _others_had_the_cores(waits: Sequence[Wait], much: float) -> bool:
    longest = max((wait for wait in waits if wait.runnable), key=lambda wait: wait.time, default=None)
    if not longest or not longest.takers or longest.time < much * longest.threads_wall:
        return False
    return longest.takers.kind in (OTHERS, UNCLEAR)


def _waits_for_others(waits: Sequence[Wait]) -> bool:
    """Whether threads that are not idle wait for much of their time for somebody who can be named."""
    wanted = [wait for wait in waits if wait.kind in _FOR_OTHERS and wait.kind != EVENTS]
    active, much = [wait for wait in wanted if not (wait.idle or wait.still)], thresholds.BESIDE_SLEEP
    return any(wait.time >= much * wait.threads_wall > 0 for wait in active)


def _scope(processes: Sequence[Process]) -> Whom:
    pids = kernel_ids(pid for process in processes for pid in process.pids)
    if pids and len(pids) <= thresholds.PIDS_IN_COMMAND and not any(process.ended for process in processes):
        return Whom(("-p", ",".join(map(str, pids))))
    first = processes[0]
    name = first.command or first.name
    alike = len(processes) == 1 or all(process.command == name for process in processes)
    return Whom(("-n", f"^{name}$")) if alike and _PLAIN.fullmatch(name) else _EVERYTHING
