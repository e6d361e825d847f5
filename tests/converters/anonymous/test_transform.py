"""Nothing private is left of a profile that has it everywhere; what is public stays, and its summary says the same."""

from __future__ import annotations

import dataclasses
import gzip
import re
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
import summary_profiles
from stallscope.converters import convert, pprof
from stallscope.converters.anonymous import anonymised, fields, transform
from stallscope.converters.model import Frame, Module, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.asked_values import AskedValues
from stallscope.converters.model.call_ioctls import CallIoctls
from stallscope.converters.model.calls import CallTimes
from stallscope.converters.model.copies import Copies
from stallscope.converters.model.gil import GilThread, GilTimes
from stallscope.converters.model.locks import KERNEL, PROCESS, SHARED, LockPlace, LockThread, LockTimes
from stallscope.converters.model.origins import MEMORY, Ancestor, ProcessOrigin
from stallscope.converters.model.processes import CpuLimit, ProcessTimes
from stallscope.converters.model.sharing import SharedCall
from stallscope.converters.model.sites import Site
from stallscope.converters.model.steps import Found, Maker, Reader, SlowSteps, Spent, Step, StepRun, Steps, StepWait
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize

SECRET = "zebra"
"""Is part of everything that has to go."""
LIBC = Module("/usr/lib/x86_64-linux-gnu/libc.so.6", "aa" * 20, 0x1D5000)
KERNEL_TEXT = Module("[kernel.kallsyms]")
MINE = Module("/home/zebra/proj/bin/zebra_train", "beefbeef" * 5, 0x9000)
TORCH = "/home/zebra/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"
STACK = (
    Frame("start_thread", "native", LIBC, 0x89000),
    Frame("zebra_loop(int)", "native", MINE, 0x1234, "/home/zebra/proj/zebra_loop.cc", 12),
    Frame("[zebra_train+0x1a2b]", "native", MINE, 0x1A2B),
    Frame("zebra_step", "python", None, 0, "/home/zebra/proj/train_zebra.py", 7),
    Frame("_call_impl", "python", None, 0, TORCH, 1500),
    Frame("zebra_jit", "jit", None, 0x7F0012345678),
    Frame("ioctl", "native", LIBC, 0x10E000),
    Frame("TUNSETQUEUE /dev/zebra/disk", "api"),
    Frame("schedule", "kernel", KERNEL_TEXT, 0xFFFFFFFF81000020),
    Frame("[zebra [x] y]", "other"),
)
WAKER = (Frame("--", "other"), Frame("zebra_wake", "waker", MINE, 4), Frame("zebra_main (zebra_thr)-12", "waker"))
LABELS = (
    ("cuda-visible-devices", "GPU-zebra-uuid"), ("host", "zebra-node1.example"), ("input", "/home/zebra/r0.pb.gz"),
    ("job", "zebra-job"), ("pid", 10), ("process", "zebra_main"), ("rank", "3"), ("state", "interruptible"),
    ("thread", "zebra_thr"), ("tid", 12), ("waker", "zebra_main-10"), ("waker_thread", "zebra_thr"),
    ("zebra-label", 5),
)  # fmt: skip
SPENT = Spent(
    1, 9, 1, 8, (StepWait(Site(("zebra_step", "ioctl"), "schedule"), 8, 1),), 1, (StepRun(("zebra_step",), 1),)
)


def everything() -> Profile:
    """Profile with every part, and a secret in each text that can have one."""
    thread = LockThread("zebra_main", "zebra_thr", 10, 12, 5, 1, "owner", ("zebra_step",))
    locks = [
        LockTimes(
            name,
            "mutex",
            whose,
            "zebra_main",
            10,
            5,
            1,
            5,
            0,
            5,
            1,
            [thread],
            0,
            [thread],
            [LockPlace(("zebra_step",))],
        )
        for name, whose in (("zebra_mutex+0x8", PROCESS), ("/dev/shm/zebra+0x40", SHARED), ("tasklist_lock", KERNEL))
    ]
    call = CallTimes("zebra_call", "", 10, "zebra_main", 1, 9, 9, 9, errors={"zebraError": 1}, library="libzebra.so")
    call.threads = [dataclasses.replace(call, thread="zebra_thr", tid=12, threads=[])]
    return Profile(
        [*summary_profiles.VALUE_TYPES, ValueType("zebra-events", "zebra-units")],
        [Sample(STACK, (1000, 1, 9, 9, 1), LABELS), Sample((*STACK[:2], *WAKER), (500, 1, 9, 9, 1), LABELS)],
        title="Off-CPU time of zebra_main",
        host="zebra-node1.example",
        duration_ns=10**9,
        threads=[ThreadTimes(10, "zebra_main", 12, "zebra_thr", 1000, 1, 9, {"interruptible": 990})],
        lost={"stacks": 1, "zebra's: /home/zebra": 2},
        comments=["the command /home/zebra/run.sh --token zebra ended", "Careful: zebra"],
        steps=[
            Steps("zebra_step", "zebra_main", 10, "zebra_thr", 12, SPENT, SPENT, 1, 1, 1, (Step(1, 1, SPENT, None),), 0,
                  SlowSteps(SPENT, SPENT, 1, None))
        ],
        found_steps=[
            Steps("", "zebra_main", 10, "zebra_thr", 12, SPENT, SPENT, 1, 1, 1, (), p90=1,
                  found=Found(Site(("zebra_step",), ""), 1, 1),
                  reader=Reader((Maker("zebra_main", 10, "zebra_thr", 12, 1),), 1, 1))
        ],
        calls=[call, CallTimes("TUNSETQUEUE", "/dev/zebra/disk", 10, "zebra_main", 1, 9, 9, 9)],
        shared=[SharedCall("TUNSETQUEUE", "/dev/zebra/disk", 1, turns={10: 1}, waits={(10, 11): 1})],
        call_ioctls=[CallIoctls("zebra_call", "libzebra.so", 10, "zebra_main", "TUNSETQUEUE", "/dev/zebra/disk", 1)],
        copies=[Copies("zebraMemcpy", "libzebra.so", 10, "zebra_main", "host to device", False, 1)],
        answers=[
            AskedValues("count-by", "str(zebra)", "zebra_call", "libzebra.so", 1, 0, values=[("/home/zebra/x", 1)])
        ],
        locks=locks,
        gil=[GilTimes("zebra_main", 10, 5, 1, waiters=[GilThread("zebra_thr", 12)],
                      holders=[GilThread("zebra_thr", 12, 5, 1, ("zebra_step",))])],
        processes=[
            ProcessTimes(10, "zebra_main", cpus="0-3", limits=(CpuLimit("/slurm/job_zebra", 1, 1),),
                         environment={"OMP_NUM_THREADS": "zebra"}, script="train_zebra.py",
                         ranks={"cuda-visible-devices": "GPU-zebra-uuid", "rank": "3"})
        ],
        origins=[
            ProcessOrigin(10, "zebra_main", [Ancestor(9, "zebra_shell")], "/opt/zebra", "/slurm/job_zebra", 1,
                          {"MASTER_ADDR": "zebra", "PMI_SIZE": "8", "SLURM_JOB_ID": "123456"}, MEMORY)
        ],
    )  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.pb.gz"
    with path.open("wb") as file:
        pprof.save(everything(), file)
    return path


SUFFIXES = (".pb.gz", ".svg", ".html", ".folded", ".speedscope.json", ".trace.json", ".md")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_secret_is_in_any_output(source: Path, tmp_path: Path, suffix: str) -> None:
    for options, has_secret in (([], True), (["--anonymize"], False)):
        path = tmp_path / f"{has_secret}{suffix}"
        assert convert.main([str(source), *options, "-o", str(path)]) == 0
        data = path.read_bytes()
        data = gzip.decompress(data) if suffix == ".pb.gz" else data
        assert (SECRET in data.decode(errors="replace").lower()) == has_secret
        if not has_secret:
            assert b"beefbeef" not in data


def test_no_secret_is_in_any_text_of_the_profile() -> None:
    made = anonymised(everything())
    texts = list(_texts(made))
    assert not [text for text in texts if SECRET in text.lower()]
    assert len(texts) > 100


def _texts(value: Any) -> typing.Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():
            yield from _texts(pair)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _texts(getattr(value, field.name))


def test_what_tells_jobs_apart_is_kept_apart() -> None:
    (origin,) = anonymised(everything()).origins
    assert origin.variables["PMI_SIZE"] == "8"
    assert origin.variables["SLURM_JOB_ID"] not in ("123456", origin.variables["MASTER_ADDR"])
    assert (origin.source, origin.ancestors[0].pid) == (MEMORY, 9)


def test_no_absolute_address_of_the_kernel_is_left() -> None:
    made = anonymised(everything())
    assert max(frame.address for sample in made.samples for frame in sample.stack) < 1 << 47


def test_public_names_stay_and_private_ones_are_told_apart() -> None:
    first, second = anonymised(everything()).samples
    names = [frame.name for frame in first.stack]
    assert names == [
        "start_thread", "function-1", "[file-1+0x1a2b]", "function-2", "_call_impl", "function-3", "ioctl",
        "TUNSETQUEUE device-1", "schedule", "function-4",
    ]  # fmt: skip
    assert first.stack[0].module == Module("libc.so.6", "aa" * 20, 0x1D5000)
    assert first.stack[1].module == Module("file-1")
    assert first.stack[3].file.endswith(".py")
    assert first.stack[4].file == "site-packages/torch/nn/modules/module.py"
    assert second.stack[1] == first.stack[1]
    assert second.stack[-1].name == "process-1 (thread-1)-12"
    labels = dict(first.labels)
    assert labels["process"] == "process-1"
    assert labels["thread"] == "thread-1"
    assert (labels["rank"], labels["pid"], labels["state"]) == ("3", 10, "interruptible")


def test_parts_use_the_same_pseudonyms_as_the_stacks() -> None:
    made = anonymised(everything())
    assert made.steps[0].name == made.gil[0].holders[0].frames[0] == made.samples[0].stack[3].name
    assert {made.steps[0].process, made.gil[0].process, made.locks[0].process} == {"process-1"}
    assert made.locks[2].name == "tasklist_lock"
    assert made.steps[0].steps.waits[0].site.frames[1] == "ioctl"


def test_functions_keep_their_names_when_asked() -> None:
    names = [frame.name for frame in anonymised(everything(), keep_functions=True).samples[0].stack]
    assert names[1] == "zebra_loop(int)"
    assert not any("/home" in text for text in _texts(anonymised(everything(), keep_functions=True)))


def test_each_field_of_a_profile_has_a_rule() -> None:
    """A new field has to be handled before it can be saved."""
    known = {*transform.PARTS, *transform.NUMBERS, *transform.DROPPED, *transform.CHANGED}
    assert {field.name for field in dataclasses.fields(Profile)} == known


def test_what_has_no_rule_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(fields.RULES, ("CpuLimit", "cgroup"))
    with pytest.raises(KeyError):
        anonymised(everything())


def test_the_answer_is_the_same_with_pseudonyms() -> None:
    before = summarize(summary_profiles.model_case()).to_json()["answer"]
    after = summarize(anonymised(summary_profiles.model_case())).to_json()["answer"]
    first, second = (next(iter(each)) if isinstance(each, list) else each for each in (before, after))
    shown = str(first).replace("demo", "process-1")
    for name, pseudonym in (("topk", "function-2"), ("wait_for_worker", "function-3")):
        shown = shown.replace(name, pseudonym)
    assert re.findall(r"[\d.,]+ %|__mutex_lock|ioctl", shown) == re.findall(
        r"[\d.,]+ %|__mutex_lock|ioctl", str(second)
    )
    assert "process-1" in str(second)
    assert "topk" not in str(second)


def test_the_summary_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    render(summarize(anonymised(everything())), sys.stdout)
    assert SECRET not in capsys.readouterr().out.lower()


def test_options_that_contradict(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert.main([str(source), "--keep-functions", "-o", "-"]) == 2
    assert "--keep-functions is an exception from --anonymize" in capsys.readouterr().err
