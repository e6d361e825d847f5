"""Sentences, next commands and rows of profiles made by hand, by the quantity that a threshold is compared with. See
pins.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from alike import of_calls
from processes import process as add_process
from processes import profile as no_waits
from processes import threads as add_threads
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.facts.idle_evidence import for_work
from stallscope.converters.facts.wait_kinds import CORE, HELD, LOCK
from stallscope.converters.model import Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.next_step import NextStep
from stallscope.converters.model.remarks import TraceCost
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import SlowSteps, Spent, StepRun, StepWait
from stallscope.converters.model.waits_for import waits_for
from stallscope.converters.phrases.steps import slow_steps
from stallscope.converters.phrases.words import Phrases
from stallscope.converters.rules import busy, held_up, idle
from stallscope.converters.rules.finding import Finding
from stallscope.converters.rules.ranking import Judgement
from stallscope.converters.scan.cost import cost_lines
from stallscope.converters.summary.answer import Answer, answer
from stallscope.converters.summary.core_takers import OTHERS, Cores, Takers
from stallscope.converters.summary.critical import Contribution, Critical, critical_sentence
from stallscope.converters.summary.few_samples import few_of_threads, hidden_part
from stallscope.converters.summary.figures import Process, Running, Who
from stallscope.converters.summary.functions_at_work import by_function
from stallscope.converters.summary.lock_holders import beside_lock
from stallscope.converters.summary.next_command import next_command
from stallscope.converters.summary.outliers import Measure
from stallscope.converters.summary.steps import steps_of
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.summary.waits_for import blocking_of
from step_traces import recorded
from summary_profiles import (
    EXE,
    FUTEX,
    MS,
    POOL,
    READ,
    SECOND,
    SLEEP,
    SPIN,
    Tracee,
    empty,
    facts_of,
    idle_pool,
    place_of,
    user,
)
from verdict_profiles import EPOLL_LOOP, FSYNC, JOIN, one
from verdict_profiles import LOCK as IN_LOCK
from wait_graphs import chained, profile_of

TEN = 10 * SECOND
TRAIN = [Process("train", (7,))]
NOTHING_JUDGED = Judgement((), None, None, (), (), ())


# What is said beside a verdict.


def is_alone(x: float, threads: int) -> bool:
    """Whether one of so many threads is named that has this share of their wait."""
    profile = empty()
    for tid in range(1, threads + 1):
        Tracee(profile, 1, "app", tid, "w").wait(FSYNC, "uninterruptible", TEN)
    facts, time = facts_of(profile), threads * TEN
    finding = Finding(
        HELD, tuple(facts.threads), time, time, (place_of(("save", "fsync")),), 9, TEN, most=round(x * time)
    )
    return "alone" in Phrases(facts.threads).sentence(finding)


def are_idle(x: float) -> bool:
    """Whether nearly all is said to be idle, if other waits have this share of the waits of idle threads."""
    summary = summarize(idle_pool())
    waits = [replace(summary.waits[0], idle=idle, time=round(time * TEN)) for idle, time in ((True, 1), (False, x))]
    said = answer(replace(summary, waits=tuple(waits)), facts_of(idle_pool()), NOTHING_JUDGED)
    return "idle threads" in said.sentences[0]


def work(frames: tuple[str, ...], weight: float) -> Running:
    who = Who("python3", "loader", False, 1, 1, (9,))
    return Running(frames, False, round(weight), 99, 1, 1, 1_000, 1, (who,))


def calls_mostly(x: float) -> bool:
    step = ("load", "t.py:9 tokenise")
    return bool(by_function([work((*step, "hash"), 1_000 * x), work(step, 1_000 * (1 - x))])[0].mostly)


def is_hidden(x: float) -> bool:
    hidden = work(("[not sampled]",), 1_000 * x)
    return bool(hidden_part(replace(summarize(idle_pool()), running=(hidden,)), 1_000))


def are_enough_of_threads(x: float) -> bool:
    """Whether nothing is said of the number of samples, if a thread has so many."""
    columns = ("wall", "nanoseconds"), ("count", "count"), ("min", "nanoseconds"), ("max", "nanoseconds")
    types = [ValueType(*column) for column in (*columns, ("samples", "count"))]
    profile = Profile(types, duration_ns=TEN)
    labels = ("pid", 7), ("process", "p"), ("state", "interruptible"), ("thread", "p"), ("tid", 7)
    profile.samples.append(Sample(user(EXE, "main", "nap"), (TEN, 0, 0, 0, round(x)), labels))
    profile.threads.append(ThreadTimes(7, "p", 7, "p", TEN, 0, 0, {"interruptible": TEN}))
    return not few_of_threads(profile)


def beside(does: Callable[[Tracee], object]) -> str:
    """Text on what eight threads do beside a lock, for which they wait for 8 of 10 seconds."""
    profile = empty()
    Tracee(profile, 100, "store", 100, "store").wait(POOL, "interruptible", TEN, 1)
    for tid in range(101, 109):
        does(Tracee(profile, 100, "store", tid, "writer").wait(IN_LOCK, "interruptible", 8 * SECOND, 1_000))
    facts = facts_of(profile)
    (lock,) = (each for each in held_up.held_up(facts) if each.kind == LOCK)
    return beside_lock(lock, facts)


def holds_up(x: float) -> bool:
    """Whether it is told that one of them at a time is blocked for this share of the trace."""
    return bool(beside(lambda thread: thread.wait(FSYNC, "uninterruptible", round(x * TEN / 8), 9)))


def queued_in(x: float) -> bool:
    """Whether the place is named where this share of their waits for a core began, beside four others."""

    def waits(thread: Tracee) -> None:
        thread.wait(FSYNC, "runnable-woken", round(x * 2 * SECOND), 9)
        for i in range(4):
            thread.wait(user(EXE, "main", f"f{i}"), "runnable-woken", round((1 - x) * SECOND / 2), 9)

    return bool(beside(waits))


def sleeps_in_it(x: float) -> bool:
    """Whether it is told that all of them together sleep for this share of the trace."""
    return bool(beside(lambda thread: thread.wait(SLEEP, "interruptible", round(x * TEN / 8), 9)))


def lost_in(x: float) -> bool:
    """Whether a wait for a core has a place where this share of it began."""
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(SPIN, "runnable-preempted", round(x * SECOND), 9)
    main.wait(READ, "runnable-woken", round((1 - x) * SECOND), 9)
    return any(wait.frames for wait in summarize(profile).waits if wait.runnable)


def is_knot(x: float) -> bool:
    knot = chained(7, 7, round(x * 5_000), ("disk-9", 9, "r")), chained(9, 9, round(x * 5_000), ("app-7", 7, "a"))
    other = chained(8, 8, round((1 - x) * 10_000), ("a-7", 7, "a"))
    return bool(blocking_of(waits_for(profile_of(*knot, other)), set()).knots)


def part_of_path(x: float) -> bool:
    parts = [
        Contribution("train-5", 5, state, ("save",), round(time * 1_000), 1)
        for state, time in (("running", 1 - x), ("uninterruptible", x))
    ]
    return "blocked" in critical_sentence(Critical("train-5", 5, 1_000, 2, tuple(parts)))


def part_of_step(x: float) -> bool:
    """Whether slow steps are said to be blocked for longer, if they are for this share of what they take more."""
    steps = steps_of(recorded())[0]
    spent = Spent(1, 11_000, 11_000 - round(x * 10_000), round(x * 10_000))
    return "blocked" in slow_steps(steps, SlowSteps(spent, Spent(1, 1_000, 1_000, 0), 3, None))


def slow_step(waits: tuple[StepWait, ...] = (), ran: tuple[StepRun, ...] = (), samples: int = 0) -> str:
    """Sentence on a step that takes 10 µs more than another one, blocked with ``waits``, or else on a core."""
    blocked = 10_000 if waits else 0
    spent = Spent(1, 11_000, 11_000 - blocked, blocked, waits, samples, ran)
    return slow_steps(steps_of(recorded())[0], SlowSteps(spent, Spent(1, 1_000, 1_000, 0), 3, None))


def waits_in_step(x: float) -> bool:
    return "in save" in slow_step((StepWait(Site(("save",), ""), round(x * 10_000), 1),))


def runs_in_step(time: float, samples: int) -> bool:
    """Whether a place is named that has this share of what the step takes more, by so many samples."""
    return "in save" in slow_step((), (StepRun(("save",), samples),), round(samples * 1.1 / time))


# What mostly happens.


def waits_for_cores(x: float) -> str:
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(round((1 - x) * TEN))
    main.wait(SPIN, "runnable-preempted", round(x * TEN), 9)
    return busy.find(facts_of(profile))[0].kind


def waits_elsewhere(x: float) -> bool:
    """Whether samples of threads that are on a core for this share of their time leave the rest to other commands."""
    profile = Profile([ValueType("on-cpu", "nanoseconds"), ValueType("samples", "count")], duration_ns=TEN)
    labels = ("pid", 7), ("process", "p"), ("state", "running"), ("thread", "p"), ("tid", 7)
    profile.samples.append(Sample(user(EXE, "main", "look"), (round(x * TEN), 900), labels))
    profile.threads.append(ThreadTimes(7, "p", 7, "p", TEN, round(x * TEN), 0, {"interruptible": TEN - round(x * TEN)}))
    return any("where the rest goes" in told for told in summarize(profile).answer)


def waits_for_its_runtime(x: float) -> bool:
    parked = (*user(EXE, "runtime.findRunnable", "runtime.futex"), *FUTEX)
    profile = one(parked, round(x * TEN))
    profile.samples += one(READ, round((1 - x) * TEN)).samples
    return bool(for_work(facts_of(profile).sums))


def needed_by_main(x: float) -> bool:
    """Whether a parked thread is idle whose main thread waits for threads for this share of its time."""
    profile = one(POOL, round(x * TEN))
    profile.samples += one(READ, round((1 - x) * TEN)).samples
    profile.threads[0].wall = TEN
    Tracee(profile, 1, "app", 2, "w").wait((*user(EXE, "park"), *POOL[3:]), "interruptible", TEN)
    Tracee(profile, 1, "app", 3, "r").run(TEN // 2).wait(READ, "interruptible", TEN // 2, 9)
    return (1, 2) in facts_of(profile).roles.idle


def serves(x: float) -> bool:
    """Whether a thread that waits in its event loop for this share of its time has nothing to do."""
    profile = one(EPOLL_LOOP, round(x * TEN), count=90)
    profile.samples += one(READ, round((1 - x) * TEN)).samples
    profile.threads[0].wall, profile.threads[0].on_cpu = TEN, 10 * MS
    return bool(idle.find(facts_of(profile)))


def works_for_main(x: float) -> bool:
    """Whether a thread that runs for this share of its time stands for the main thread, which only joins it."""
    profile = one(JOIN, TEN, count=1)
    worker = Tracee(profile, 1, "app", 2, "w").run(round(x * TEN)).wait(SLEEP, "interruptible", SECOND, 9)
    worker.wait(READ, "interruptible", round((0.9 - x) * TEN), 9)
    return facts_of(profile).is_main((1, 2))


# Processes that are alike.


def are_alike(x: float) -> bool:
    return bool(summarize(of_calls(number=round(x), ranks=False)).alike)


def alike_matter(x: float) -> int:
    """Number of groups that are compared, where one has this share of the time of both."""
    made, small = of_calls(slow=99), of_calls(slow=99, ranks=False, name="small")
    factor = x / (1 - x)
    for call in small.calls:
        call.pid += 1_000
        call.total, call.inner = round(call.total * factor), round(call.inner * factor)
    for process in small.processes:
        process.pid += 1_000
    made.calls += small.calls
    made.processes += small.processes
    return len(summarize(made).alike)


def stands_out(*values: float, of_shares: bool = False) -> bool:
    return bool(Measure("x", "share" if of_shares else "nanoseconds", values).outliers)


# Who had the cores.


def taken(time: float = 0.1, whole_host: bool = False, **used: float) -> Takers | None:
    """Takers of four cores that others used for so much, from a thread that waits for this share of its time."""
    made = no_waits()
    for pid, (name, cores) in enumerate({"victim": 0.1, **used}.items(), start=1):
        add_process(made, pid * 100, name)
        add_threads(made, pid * 100, name, name, 1, on_cpu=round(cores * TEN), wall=TEN)
    return Cores(contention_of(made), whole_host=whole_host).takers((100,), round(time * TEN), TEN, 1)


def tells_takers(x: float) -> bool:
    return taken(x) is not None


def takers_named(x: float) -> int:
    found = taken(whole_host=True, burn=2.5, little=4 * x)
    return len(found.names) if found else 0


def traced_have_cores(x: float) -> str:
    found = taken(burn=4 * x - 0.1)
    return found.kind if found else ""


# The next command.


def asks(kind: str, wait_kind: str, x: float) -> NextStep | None:
    """Recommended after a sentence of this kind, beside a wait for this share of the threads' time."""
    wait = replace(summarize(idle_pool()).waits[-1], idle=False, still=False, kind=wait_kind)
    wait = replace(wait, time=round(x * TEN), threads_wall=TEN, takers=Takers(OTHERS) if wait_kind == CORE else None)
    return next_command(Answer((), kind), False, TRAIN, [wait])


def cost_of_tracer(x: float) -> TraceCost:
    """Cost of a trace whose tracer took this share of a core from others."""
    tracer = round(x * TEN)
    return TraceCost(TEN // 100 + tracer, TEN, (("waits", TEN // 100), ("tracer", tracer)), 50_000, TEN)


def tracer_is_told(x: float) -> bool:
    return "the tracer itself" in cost_lines([cost_of_tracer(x)])[0]
