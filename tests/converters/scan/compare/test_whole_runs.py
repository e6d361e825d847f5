from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from stallscope.converters import pprof
from stallscope.converters.model import Frame, Module, Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.origins import ProcessOrigin
from stallscope.converters.model.states import RUNNING, UNINTERRUPTIBLE
from stallscope.converters.scan.compare.comparing import compare
from stallscope.converters.scan.compare.telling import lines, to_json
from summary_profiles import MS, SECOND, kernel, user

LIBC = Module("/usr/lib/x86_64-linux-gnu/libc.so.6")
EXE = Module("/srv/job")
READS = (*user(EXE, "main", "load"), *user(LIBC, "read"), *kernel("ksys_read", "vfs_read", "folio_wait_bit_common"))


def job(functions: Mapping[str, int], reads: int = 0, *, waits_for_core: int = 0, name: str = "job") -> Profile:
    """A command whose main thread runs in functions for so many ms, and reads."""
    on_cpu = sum(functions.values()) * MS
    wall = on_cpu + (reads + waits_for_core) * MS
    made = Profile([ValueType("wall", "nanoseconds")], duration_ns=wall + 30 * MS)
    labels = {"pid": 7, "tid": 7, "process": name, "thread": name}
    for function, time in functions.items():
        stack = (*user(EXE, "main", "step"), *user(LIBC if function.startswith("__") else EXE, function))
        made.samples.append(Sample(stack, (time * MS,), tuple({**labels, "state": RUNNING}.items())))
    if reads:
        made.samples.append(Sample(READS, (reads * MS,), tuple({**labels, "state": UNINTERRUPTIBLE}.items())))
    other = tuple({**labels, "tid": 8, "state": RUNNING}.items())
    made.samples.append(Sample(user(EXE, "other"), (SECOND,), other))
    blocked = {UNINTERRUPTIBLE: reads * MS} if reads else {}
    made.threads = [
        ThreadTimes(7, name, 7, name, wall, on_cpu, waits_for_core * MS, blocked, exited=True),
        ThreadTimes(7, name, 8, name, SECOND, SECOND, 0, {}, exited=True),
    ]
    made.origins = [ProcessOrigin(7, name, launched=True)]
    return made


def first(before: Profile, after: Profile) -> str:
    return next(lines(compare([before], [after])))


def test_how_much_longer_a_run_takes() -> None:
    before, after = job({"fused": 1000}), job({"fused": 300, "__memmove_avx": 2500}, 400, waits_for_core=100)
    assert first(before, after) == (
        "A run of job takes 3.30 s instead of 1.00 s (+230 %): +1.80 s on a core, mostly in memmove_avx, "
        "+400 ms in main → load → read."
    )
    assert first(after, before) == (
        "A run of job takes 1.00 s instead of 3.30 s (-70 %): -1.80 s on a core, mostly in memmove_avx, "
        "-400 ms in main → load → read."
    )


def test_the_innermost_function_is_told_in_which_most_of_it_is() -> None:
    told = first(job({"a": 500}), job({"a": 500, "b": 320, "c": 280}))
    assert told == "A run of job takes 1.10 s instead of 500 ms (+120 %): +600 ms on a core, mostly in step."


def test_a_run_that_takes_as_long_is_only_in_the_table() -> None:
    made = list(lines(compare([job({"a": 1000})], [job({"a": 1040})])))
    assert not made[0].startswith("A run")
    assert any(line.endswith("s of job, 1 and 1 runs") for line in made)


def test_another_command() -> None:
    assert first(job({"a": 1000}, name="old"), job({"a": 2000}, name="new")).startswith(
        "A run of new takes 2.00 s instead of 1.00 s of old (+100 %)"
    )


def goes_on(made: Profile) -> None:
    made.threads[0].exited = False


def was_there(made: Profile) -> None:
    made.origins[0].launched = False


def another_life(made: Profile) -> None:
    """Another process has had its pid."""
    made.origins[0].pid_life = 2


@pytest.mark.parametrize("change", [goes_on, was_there, another_life])
def test_what_is_no_whole_run(change: object) -> None:
    whole, part = job({"a": 1000}), job({"a": 2000})
    assert compare([whole], [part]).steps
    assert callable(change)
    change(part)
    assert not compare([whole], [part]).steps
    assert not compare([part], [whole]).steps
    assert not compare([whole, part], [whole]).steps


def test_commands_of_several_names_are_not_one() -> None:
    mixed = [job({"a": 1000}), job({"a": 1000}, name="other")]
    assert not compare(mixed, [job({"a": 2000})]).steps


def test_runs_are_tested() -> None:
    one, other = ([job({"a": time}) for time in times] for times in ((1000, 1010, 990), (2000, 2020, 1990)))
    made = compare(one, other)
    (change,) = made.steps
    assert change.is_change
    assert next(lines(made)).startswith("A run of job takes 2.00 s instead of 1.00 s (+100 %), which differs (p")
    assert made.tested == 1
    (noise,) = compare([*one[:2], job({"a": 2200})], other).steps
    assert not noise.is_told


def test_json_and_hostile_names() -> None:
    name = "a\x1b[31m<b>"
    made = compare([job({"a": 1000}, name=name)], [job({"a": 500, "b\x1b]0;": 1500}, name=name)])
    assert "\x1b" not in "".join(lines(made))
    (step,) = to_json(made)["steps"]
    assert (step["is_run"], step["counts"], step["is_told"]) == (True, [1, 1], True)
    assert step["mostly"].startswith("b")
    assert "\x1b" not in json.dumps(step)


def test_captures_keep_that_a_command_was_launched() -> None:
    file = io.BytesIO()
    pprof.save(job({"a": 1000}), file)
    file.seek(0)
    (origin,) = pprof.load(file).origins
    assert origin == ProcessOrigin(7, "job", launched=True)
    assert replace(origin, launched=False) == ProcessOrigin(7, "job")


def test_frames_of_interpreters_only_call() -> None:
    made = job({"a": 1000})
    more = job({"a": 1000})
    stack = (*user(EXE, "main"), Frame("_PyEval_EvalFrameDefault", "native", EXE))
    labels = more.samples[0].labels
    more.samples.append(Sample(stack, (SECOND,), labels))
    more.threads[0].on_cpu += SECOND
    more.threads[0].wall += SECOND
    assert "mostly in main" in first(made, more)


def test_a_function_that_is_called_elsewhere_too_is_further_inside_all_the_same() -> None:
    more = job({"a": 1000})
    labels = more.samples[0].labels
    for inside, time in (("step", "wrap", "copy"), 600), (("copy",), 50):
        more.samples.append(Sample(user(EXE, "main", *inside), (time * MS,), labels))
    more.threads[0].on_cpu += 650 * MS
    more.threads[0].wall += 650 * MS
    assert "+650 ms on a core, mostly in copy." in first(job({"a": 1000}), more)
