"""Sentences on calls of profiles made by hand, by the quantity that a threshold is compared with. See pins.py."""

from __future__ import annotations

from dataclasses import replace

from stallscope.converters.model import Frame, Module, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.next_step import Whom
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.summary.call_ioctl_sentence import call_ioctl_sentence
from stallscope.converters.summary.call_places import Times
from stallscope.converters.summary.call_time import CallTime, answer_of_times
from stallscope.converters.summary.calls import Calls, answer_of_calls
from stallscope.converters.summary.next_command import after_calls
from stallscope.converters.summary.outside_ioctls import outside_ioctls
from stallscope.converters.summary.sharing import serialised, shared_calls
from stallscope.converters.summary.summarize import summarize
from summary_profiles import (
    SECOND,
)

TEN = 10 * SECOND


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
    return "worker" in call_ioctl_sentence(calling((("get",), x, 2), (("get",), 1 - x, 1)), (), ())


def in_ioctl(x: float) -> bool:
    return "ioctl" in call_ioctl_sentence(calling((("get", "ioctl"), x, 1), (("get",), 1 - x, 1)), (), ())


def called_itself(time: float, calls: float) -> bool:
    """Whether a function of 10 s and 1,000 calls is one that the program calls, if so many of these have no caller."""
    whole = CallTimes("helper", "", 1, "app", 1_000, TEN, library="libcudart.so.12", tid=1)
    call = replace(whole, tid=0, threads=[whole])
    profile = calling((("get", "helper"), 5, 1), (("helper",), 10 * time, 1))
    profile.samples[-1] = profile.samples[-1]._replace(values=(profile.samples[-1].values[0], round(1_000 * calls)))
    return "is in helper" in call_ioctl_sentence(profile, (Calls(call, (call,)),), ())


def part_of_time(x: float) -> bool:
    """Whether the wait for the GPU is told that takes this share of the calling threads' time."""
    gpu = Times(0, round(x * TEN), 0)
    return "GPU" in answer_of_times((CallTime(1, "train", 1, TEN, gpu=gpu, outside=Times(TEN, 0, 0)),))[0]


def part_outside(x: float) -> bool:
    """Whether it is told that they wait outside of calls for this share of it."""
    outside = Times(TEN - round(x * TEN), round(x * TEN), 0)
    return "waiting outside" in answer_of_times((CallTime(1, "train", 1, TEN, outside=outside),))[0]


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


def sharing(*calls: SharedCall, blocked: int = 0) -> Profile:
    timed = [CallTimes("A", "/dev/x", pid, "train", 3, 1_000, 1, 50, blocked) for pid in (1, 2, 3)]
    values = [ValueType("ioctl", "nanoseconds"), ValueType("calls", "count")]
    return Profile(values, calls=timed, shared=list(calls), duration_ns=TEN)


def serialise(*calls: SharedCall, blocked: int = 0) -> tuple[str, ...]:
    return serialised(shared_calls(sharing(*calls, blocked=blocked)))


def said_of_calls(x: float) -> tuple[bool, bool]:
    """Whether it is said that little of the time is in calls, and that they serialise, if threads are in them for this
    share of their time."""
    profile = sharing(shared_call())
    profile.threads = [ThreadTimes(pid, "train", pid, "train", round(1_000 / x), 0, 0, {}) for pid in (1, 2, 3)]
    told = " ".join(summarize(profile).answer)
    return "is in calls" in told, "serialise" in told


def takes_longer(x: float) -> bool:
    return bool(serialise(shared_call(alone_time=round(4_000_000 / (4 * x + 1)))))


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


def ioctl_takes_longer(x: float) -> bool:
    """Whether an ioctl in a function is said to take so many times longer with others inside."""
    shared = Profile([], shared=[shared_call(name="GET_INFO", alone_time=round(4_000_000 / (4 * x + 1)))])
    profile = calling((("get", "ioctl"), 1, 1))
    return "times as long" in call_ioctl_sentence(profile, (), shared_calls(shared))
