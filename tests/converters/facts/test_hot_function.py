"""The function that trace-func is recommended for."""

from __future__ import annotations

import pytest
from stallscope.converters.facts.hot_function import hot_function
from stallscope.converters.model import Frame, Module, Profile, Sample, Stack, ValueType
from summary_profiles import EXE, LIBC, kernel, user

PACK = Module("/srv/app/libpack.so")
COPY = (*user(EXE, "main", "serve"), *user(PACK, "pack_message"), *user(LIBC, "memcpy"))
OTHER = user(EXE, "main", "serve")
PYTHON = (*COPY, Frame("encode", "python", file="/srv/app/codec.py", line=3))


def profile(*samples: tuple[Stack, int]) -> Profile:
    made = Profile([ValueType("on-cpu", "nanoseconds"), ValueType("samples", "count")])
    made.samples = [Sample(stack, (weight, 1), (("state", "running"),)) for stack, weight in samples]
    made.samples.append(Sample(user(EXE, "main", "wait_for_work"), (999, 0), (("state", "interruptible"),)))
    return made


def test_the_function_with_most_of_the_time() -> None:
    in_kernel = (*COPY, *kernel("do_page_fault"))
    assert hot_function(profile((COPY, 40), (in_kernel, 15), (OTHER, 45))) == "libpack.so:pack_message"


@pytest.mark.parametrize(
    "samples",
    [
        [(COPY, 40), (OTHER, 30), (PYTHON, 30)],
        [(PYTHON, 100)],
        [(user(EXE, "main"), 100)],
        [(user(LIBC, "memcpy"), 100)],
        [],
        [(user(PACK, "pack::message(int)"), 100)],
        [(user(PACK, "[libpack.so+0x10]"), 100)],
        [(user(PACK, "a;reboot"), 100)],
        [(user(PACK, "pack\n"), 100)],
        [(user(Module("/srv/$(reboot).so"), "pack"), 100)],
        [(user(Module("/srv/-p 1.so"), "pack"), 100)],
    ],
)
def test_none_is_named(samples: list[tuple[Stack, int]]) -> None:
    assert hot_function(profile(*samples)) == ""
