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
from stallscope.converters.model import Frame, Module, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.next_step import NextStep, Whom
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.model.steps import SlowSteps, Spent
from stallscope.converters.model.waits_for import waits_for
from stallscope.converters.phrases.steps import slow_steps
from stallscope.converters.phrases.words import Phrases
from stallscope.converters.rules import busy, held_up
from stallscope.converters.rules.finding import Finding
from stallscope.converters.rules.ranking import Judgement
from stallscope.converters.summary.answer import Answer, answer
from stallscope.converters.summary.blocking import blocking_of
from stallscope.converters.summary.call_places import Times
from stallscope.converters.summary.call_time import CallTime, answer_of_times
from stallscope.converters.summary.calls import Calls, answer_of_calls
from stallscope.converters.summary.core_takers import Cores
from stallscope.converters.summary.critical import Contribution, Critical, critical_sentence
from stallscope.converters.summary.few_samples import hidden_part
from stallscope.converters.summary.figures import OTHERS, Process, Running, Takers, Who
from stallscope.converters.summary.functions_at_work import by_function
from stallscope.converters.summary.joined import answer_of_joined
from stallscope.converters.summary.lock_holders import beside_lock
from stallscope.converters.summary.next_command import after_calls, next_command
from stallscope.converters.summary.outliers import Measure
from stallscope.converters.summary.outside_ioctls import outside_ioctls
from stallscope.converters.summary.sharing import serialised, shared_calls
from stallscope.converters.summary.steps import steps_of
from stallscope.converters.summary.summarize import summarize
from step_traces import recorded
from summary_profiles import (
    EXE,
    FUTEX,
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
from verdict_profiles import FSYNC, JOIN, one
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


def beside(does: Callable[[Tracee], object]) -> str:
    """What eight threads do beside a lock, for which they wait for 8 of 10 seconds."""
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


# Calls.


def are_minor(x: float) -> bool:
    return after_calls(x, False, Whom(("-n", "train"))) is not None


IOCTL = Frame("GET_INFO /dev/x", "api")
CUDA = Module("/x/libcudart.so.12")


def calling(*samples: tuple[tuple[str, ...], float, int]) -> Profile:
    """Threads ``1`` and ``2``, which is a worker, call functions and an ioctl: names, seconds and the thread."""
    made = Profile([ValueType("calls", "nanoseconds"), ValueType("calls", "count")], duration_ns=TEN)
    for names, seconds, tid in samples:
        frames = [Frame(name, "api", CUDA) if name != "ioctl" else IOCTL for name in names]
        labels = ("pid", 1), ("process", "app"), ("state", "running"), ("thread", "x"), ("tid", tid)
        made.samples.append(Sample((Frame("main"), *frames), (round(seconds * SECOND), 0), labels))
    made.threads = [ThreadTimes(1, "app", tid, name, TEN, TEN, 0, {}) for tid, name in ((1, "app"), (2, "worker"))]
    return made


def called_by(x: float) -> bool:
    """Whether threads are named that have this share of a call's time."""
    return "worker" in answer_of_joined(calling((("get",), x, 2), (("get",), 1 - x, 1)), (), ())


def in_ioctl(x: float) -> bool:
    return "ioctl" in answer_of_joined(calling((("get", "ioctl"), x, 1), (("get",), 1 - x, 1)), (), ())


def called_itself(time: float, calls: float) -> bool:
    """Whether a function of 10 s and 1,000 calls is one that the program calls, if so many of these have no caller."""
    whole = CallTimes("helper", "", 1, "app", 1_000, TEN, library="libcudart.so.12", tid=1)
    call = replace(whole, tid=0, threads=[whole])
    profile = calling((("get", "helper"), 5, 1), (("helper",), 10 * time, 1))
    profile.samples[-1] = profile.samples[-1]._replace(values=(profile.samples[-1].values[0], round(1_000 * calls)))
    return "is in helper" in answer_of_joined(profile, (Calls(call, (call,)),), ())


def part_of_time(x: float) -> bool:
    """Whether the wait for the GPU is told that takes this share of the calling threads' time."""
    gpu = Times(0, round(x * TEN), 0)
    return "GPU" in answer_of_times((CallTime(1, "train", 1, TEN, gpu=gpu, outside=Times(TEN, 0, 0)),))[0]


def is_outside(x: float) -> bool:
    """Whether ioctls outside of functions' calls are told, with this share of the time in all."""
    call = CallTimes("GET_INFO", "/dev/x", 1, "train", 1, TEN)
    return bool(outside_ioctls(calling((("get", "ioctl"), 10 * (1 - x), 1)), [Calls(call, (call,))]))


def shared_call(**changes: object) -> SharedCall:
    """A call that takes four times as long as alone."""
    turns, waits = {1: 1_000, 2: 1_000, 3: 1_000}, {(1, 3): 70, (2, 3): 70}
    call = SharedCall("A", "/dev/x", 10_000, 9_000, 25_000, 100, 4_000_000, 20, 200_000, turns, waits)
    for name, value in changes.items():
        setattr(call, name, value)
    return call


def serialise(*calls: SharedCall, blocked: int = 0) -> tuple[str, ...]:
    timed = [CallTimes("A", "/dev/x", pid, "train", 3, 1_000, 1, 50, blocked) for pid in (1, 2, 3)]
    values = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    return serialised(shared_calls(Profile(values, calls=timed, shared=list(calls))))


def takes_longer(x: float) -> bool:
    return bool(serialise(shared_call(alone_time=round(800_000 / x))))


def other_longer_than(x: float) -> bool:
    """Whether a call is told that several are inside of for this share of the time of another one."""
    other = shared_call(name="B", alone_time=800_000, inside=250_000)
    return bool(serialise(other, shared_call(inside=round(x * 250_000), busy=1_000, shared=900)))


def is_known_alone(x: float) -> bool:
    return "as alone" in serialise(shared_call(alone=round(x), alone_time=round(x) * 100))[0]


def call_works(x: float) -> bool:
    """Whether the call is said to work if this share of turns is on a core."""
    turns = {pid: round(300 / x / 3) for pid in (1, 2, 3)}
    return "itself works" in serialise(shared_call(turns=turns), blocked=900)[-1]


def holds_others_up(x: float) -> bool:
    return any("was inside" in told for told in serialise(shared_call(turns={1: 1_000, 2: 1_000, 3: round(1_000 * x)})))


def fail(failed: float, called: float) -> bool:
    """Whether it is said that so many calls of so many failed."""
    call = CallTimes("GET_INFO", "/dev/x", 1, "train", round(called), TEN, errors={"EAGAIN": round(failed)})
    return any("failed" in told for told in answer_of_calls([Calls(call, (call,))], 0))


# What mostly happens.


def waits_for_cores(x: float) -> str:
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(round((1 - x) * TEN))
    main.wait(SPIN, "runnable-preempted", round(x * TEN), 9)
    return busy.find(facts_of(profile))[0].kind


def waits_for_its_runtime(x: float) -> bool:
    parked = (*user(EXE, "runtime.findRunnable", "runtime.futex"), *FUTEX)
    profile = one(parked, round(x * TEN))
    profile.samples += one(READ, round((1 - x) * TEN)).samples
    return bool(for_work(facts_of(profile).sums))


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
