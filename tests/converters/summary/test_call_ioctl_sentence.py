"""The first sentence, the times of calling threads, and what functions' calls made, of one small profile."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from stallscope.converters.model import Frame, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.call_ioctls import CallIoctls
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.copies import Copies
from stallscope.converters.model.samples import Module
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize

MS = 1_000_000
RUNTIME, DRIVER = Module("/x/libcudart.so.12"), Module("/x/libcuda.so.1")
QUERY = (Frame("main"), Frame("cudaGetDeviceProperties", "api", RUNTIME), Frame("cuDeviceGetAttribute", "api", DRIVER))
SYNC = (Frame("main"), Frame("cudaStreamSynchronize_ptsz", "api", RUNTIME))
IOCTL = Frame("GPU_GET_INFO /dev/nvidiactl", "api")
LOCKED = tuple(Frame(name, "kernel") for name in ("__x64_sys_ioctl", "rwsem_down_read_slowpath", "schedule"))
PROCESSES = (1, 2)


def samples(pid: int) -> list[Sample]:
    """90 ms of 100: 60 blocked in the ioctl, 5 on a core in it, 5 beside it; 12 blocked and 8 polling for the GPU."""
    who = ("pid", pid), ("process", "train"), ("thread", "train"), ("tid", pid)
    parts = [
        (QUERY, "running", 5, 20),
        ((*QUERY, IOCTL), "running", 5, 0),
        ((*QUERY, IOCTL, *LOCKED), "uninterruptible", 60, 0),
        (SYNC, "running", 8, 4),
        ((*SYNC, *LOCKED), "interruptible", 12, 0),
    ]
    return [
        Sample(stack, (ms * MS, calls), tuple(sorted((*who, ("state", state))))) for stack, state, ms, calls in parts
    ]


def profile(**changes: Any) -> Profile:
    calls = []
    for pid in PROCESSES:
        calls += [
            CallTimes(
                "cudaGetDeviceProperties", "", pid, "train", 10, 70 * MS, 1, 9 * MS, 60 * MS, library="libcudart.so.12"
            ),
            CallTimes("GPU_GET_INFO", "/dev/nvidiactl", pid, "train", 10, 65 * MS, 1, 9 * MS, 60 * MS),
        ]
    names = "cudaGetDeviceProperties", "libcudart.so.12"
    made = [
        CallIoctls(*names, pid, "train", "GPU_GET_INFO", "/dev/nvidiactl", 10, 65 * MS, 60 * MS) for pid in PROCESSES
    ]
    copies = [
        Copies(
            "cudaMemcpy",
            "libcudart.so.12",
            1,
            "train",
            "host to device",
            is_async=False,
            count=3,
            bytes=3 << 20,
            total=MS,
        )
    ]
    shared = SharedCall("GPU_GET_INFO", "/dev/nvidiactl", 100, 90, 250, 100, 6120, 20, 200)
    times = [
        ThreadTimes(pid, "train", pid, "train", 100 * MS, 20 * MS, 0, {"uninterruptible": 80 * MS}) for pid in PROCESSES
    ]
    values = [ValueType("calls", "nanoseconds"), ValueType("calls", "count")]
    found = Profile(
        values,
        [sample for pid in PROCESSES for sample in samples(pid)],
        duration_ns=100 * MS,
        threads=times,
        calls=calls,
        shared=[shared],
        call_ioctls=made,
        copies=copies,
    )
    return replace(found, **changes)


def shown(of: Profile, width: int = 200) -> str:
    file = io.StringIO()
    render(summarize(of), file, width=width, color=False)
    return file.getvalue()


def test_the_first_sentence_names_the_call_the_ioctl_and_the_lock() -> None:
    assert summarize(profile()).answer[0] == (
        "70.0 % of the time of 2 calling threads in 2 processes of train is in cudaGetDeviceProperties (20 calls, "
        "mean 7.00 ms, max 9.00 ms): 85.7 % of it blocked in the ioctl GPU_GET_INFO of /dev/nvidiactl, in "
        "rwsem_down_read_slowpath; that ioctl takes 7.4 times as long as alone."
    )


def with_threads(call: CallTimes) -> CallTimes:
    return replace(call, threads=[replace(call, tid=call.pid, thread="train")])


@pytest.mark.parametrize("left", [1.0, 0.6, 0.0])
def test_the_sentence_and_the_table_agree_whatever_the_stacks_are(left: float) -> None:
    """A part of the time is in stacks that have no function, or only the inner one."""
    made = profile()
    made.calls[:] = [with_threads(call) for call in made.calls if call.library]
    inner = replace(made.calls[0], name="cuDeviceGetAttribute", total=66 * MS, blocked=60 * MS, library="libcuda.so.1")
    made.calls += [with_threads(replace(inner, pid=pid)) for pid in PROCESSES]
    kept = []
    for sample in made.samples:
        known = round(sample.values[0] * left)
        missing = sample.values[0] - known
        for stack, ns in ((sample.stack, known), (sample.stack[2:], missing // 2), (LOCKED, missing - missing // 2)):
            kept.append(sample._replace(stack=stack, values=(ns, 0)))
    told = summarize(replace(made, samples=kept)).answer[0]
    share, name, mean = (
        ("70.0", "cudaGetDeviceProperties", "7.00") if left else ("66.0", "cuDeviceGetAttribute", "6.60")
    )
    whose = "of 2 calling threads in 2 processes of train"
    assert told.startswith(f"{share} % of the time {whose} is in {name} (20 calls, mean {mean} ms, ")
    assert "85.7 % of it blocked in the ioctl" in told or not left


def test_a_function_that_ends_by_jumping_into_another_one_is_named() -> None:
    """The function may be zlib's deflateInit2_, which jumps into deflateReset: the stacks of nearly all its time have
    only the other one."""
    made = profile()
    (own, *_), inside = QUERY[1:], QUERY[2]
    outer = [with_threads(call) for call in made.calls if call.library]
    inner = [with_threads(replace(call, name=inside.name, total=call.total - MS)) for call in outer]
    who = ("process", "train"), ("thread", "train"), ("state", "running")
    kept = []
    for pid in PROCESSES:
        labels = tuple(sorted((*who, ("pid", pid), ("tid", pid))))
        kept.append(Sample((Frame("main"), own), (MS, 10), labels))
        kept.append(Sample((Frame("main"), inside), (69 * MS, 10), labels))
    told = summarize(replace(made, calls=[*outer, *inner], samples=kept, call_ioctls=[])).answer[0]
    assert told.startswith("70.0 % of the time of 2 calling threads in 2 processes of train is in cudaGetDevicePro")


def test_a_call_that_goes_on_counts_in_the_share() -> None:
    """Stacks tell what a call does that goes on."""
    made = profile()
    made.calls[:] = [
        with_threads(replace(call, open_count=1, open_time=10 * MS)) for call in made.calls if call.library
    ]
    told = summarize(made).answer[0]
    assert told.startswith("80.0 % of the time of 2 calling threads in 2 processes of train is in cudaGetDevicePro")
    assert "85.7 % of it blocked in the ioctl" in told


def test_a_function_inside_itself_is_counted_once() -> None:
    made = profile()
    made.calls[:] = [with_threads(replace(call, total=2 * call.total)) for call in made.calls if call.library]
    kept = [
        sample._replace(stack=(*sample.stack[:2], *sample.stack[1:])) if sample.stack[1] == QUERY[1] else sample
        for sample in made.samples
    ]
    assert summarize(replace(made, samples=kept)).answer[0].startswith("70.0 % of the time of 2 calling threads")


def test_threads_of_one_name_with_nearly_all_of_the_time_are_named() -> None:
    made = profile()
    for pid in PROCESSES:
        made.threads.append(ThreadTimes(pid, "train", pid + 100, "loader-7", 100 * MS, 0, 0, {}))
        who = ("pid", pid), ("process", "train"), ("state", "running"), ("thread", "loader-7"), ("tid", pid + 100)
        made.samples.append(Sample(QUERY, (MS, 1), who))
    assert summarize(made).answer[0].startswith("70.0 % of the time of 2 main threads in 2 processes of train is in ")
    for pid in PROCESSES:
        who = ("pid", pid), ("process", "train"), ("state", "running"), ("thread", "loader-7"), ("tid", pid + 100)
        made.samples.append(Sample(QUERY, (49 * MS, 1), who))
    told = summarize(made).answer[0]
    assert told.startswith("60.0 % of the time of 4 calling threads in 2 processes of train is in ")


def test_the_calls_that_are_told_are_those_of_the_threads_that_are_named() -> None:
    made = profile()
    own = [with_threads(call) for call in made.calls if call.library]
    made.calls[:] = [
        replace(
            call,
            count=call.count + 4,
            total=call.total + 4,
            threads=[*call.threads, replace(call, tid=call.pid + 100, thread="loader-7", count=4, total=4, threads=[])],
        )
        for call in own
    ]
    for pid in PROCESSES:
        made.threads.append(ThreadTimes(pid, "train", pid + 100, "loader-7", 100 * MS, 0, 0, {}))
    told = summarize(made).answer[0]
    assert "of 2 main threads in 2 processes" in told
    assert "(20 calls, mean 7.00 ms, " in told


def test_without_ioctls_it_says_what_the_time_was() -> None:
    kept = [sample for sample in profile().samples if IOCTL not in sample.stack]
    assert summarize(profile(samples=kept, call_ioctls=[])).answer[0] == (
        "20.0 % of the time of 2 calling threads in 2 processes of train is in cudaStreamSynchronize_ptsz: "
        "40.0 % on a core, 60.0 % blocked (mostly in rwsem_down_read_slowpath), 0.0 % waiting for a core."
    )


def test_an_ioctl_that_works() -> None:
    kept = [sample for sample in profile().samples if LOCKED[0] not in sample.stack or IOCTL not in sample.stack]
    kept = [s._replace(values=(50 * MS, 0)) if IOCTL in s.stack else s for s in kept]
    assert "of it on a core in the ioctl GPU_GET_INFO of /dev/nvidiactl;" in summarize(profile(samples=kept)).answer[0]


def test_shares_are_of_all_calls_if_threads_are_not_known() -> None:
    assert (
        summarize(profile(threads=[])).answer[0].startswith("77.8 % of the time in all calls is in cudaGetDeviceProp")
    )


def test_without_user_stacks_it_is_the_sentence_of_single_calls() -> None:
    bare = [sample._replace(stack=(Frame("[no stack]", "other"),)) for sample in profile().samples]
    answer = summarize(profile(samples=bare)).answer
    assert answer[0].startswith("100.0 % of the time in all calls is in cudaGetDeviceProperties of libcudart.so.12: ")


def test_what_the_calling_threads_wait_for() -> None:
    assert summarize(profile()).answer[1] == (
        "The calling threads wait 20.0 % for the GPU (synchronisation: 60.0 % of it blocked, 40.0 % polling) and "
        "60.0 % for the driver (blocked in ioctls of other calls); 10.0 % otherwise in calls, 2.0 % on a core outside "
        "of them, 8.0 % waiting outside of them."
    )
    first, _ = summarize(profile()).to_json()["call_times"]
    assert (first["pid"], first["threads"], first["wall_ns"]) == (1, 1, 100 * MS)
    assert first["gpu"] == {"on_cpu_ns": 8 * MS, "blocked_ns": 12 * MS, "runnable_ns": 0}
    assert first["driver"] == {"on_cpu_ns": 5 * MS, "blocked_ns": 60 * MS, "runnable_ns": 0}
    assert first["outside"] == {"on_cpu_ns": 2 * MS, "blocked_ns": 8 * MS, "runnable_ns": 0}


def test_the_table_has_a_row_per_process() -> None:
    rows = [" ".join(line.split()) for line in shown(profile()).splitlines()]
    (first,) = [i for i, row in enumerate(rows) if row.startswith("GPU: blocked polling Driver Other calls Outside: ")]
    shares = "12.0 % 8.0 % 60.0 % 10.0 % 2.0 % 8.0 %"
    assert rows[first + 1 : first + 3] == [f"{shares} train ({pid})" for pid in PROCESSES]


@pytest.mark.parametrize("threads", [[], profile().threads[:1]])
def test_what_is_outside_of_calls_is_not_guessed(threads: list[ThreadTimes]) -> None:
    assert summarize(profile(threads=threads)).call_times == ()


def test_calls_of_other_libraries_have_no_gpu_to_wait_for() -> None:
    others = [replace(call, name=call.name.replace("cuda", "shop")) for call in profile().calls]
    summary = summarize(profile(calls=others))
    assert summary.call_times == ()
    assert "calling threads wait" not in " ".join(summary.answer)


def test_ioctls_are_part_of_the_calls_and_no_rows() -> None:
    summary = summarize(profile())
    assert {each.total.name for each in summary.calls} == {"cudaGetDeviceProperties"}
    text = shown(profile())
    assert (
        "ioctl 20 × GPU_GET_INFO /dev/nvidiactl: 130 ms, 7.7 % on a core, 92.3 % blocked in rwsem_down_read_slowpath"
        in text
    )
    made = json.loads(json.dumps(summary.to_json()))["calls"]
    assert [(call["name"], "ioctls" in call) for call in made] == [
        *[("cudaGetDeviceProperties", True)] * 2,
        *[("GPU_GET_INFO", False)] * 2,
    ]
    (inside,) = made[0]["ioctls"]
    assert (inside["name"], inside["device"], inside["count"]) == ("GPU_GET_INFO", "/dev/nvidiactl", 10)
    assert (inside["total_ns"], inside["on_cpu_ns"], inside["blocked_ns"]) == (65 * MS, 5 * MS, 60 * MS)
    assert inside["blocked_in"] == "rwsem_down_read_slowpath"


def test_names_are_printed_safely() -> None:
    hostile = "a\x1b[31mb"
    calls = [CallTimes("cudaFree", "", 1, hostile, 1, MS, 1, MS, library=hostile)]
    made = [CallIoctls("cudaFree", hostile, 1, hostile, hostile, "/dev/x", 1, MS, MS)]
    copies = [replace(profile().copies[0], name=hostile, library=hostile)]
    text = shown(profile(calls=calls, call_ioctls=made, copies=copies))
    assert "\x1b" not in text
