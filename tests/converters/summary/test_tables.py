"""Rows and columns; what the whole looks like is in test_render.py."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from stallscope.converters.model import Profile
from stallscope.converters.model.processes import ProcessTimes
from stallscope.converters.summary.summarize import summarize
from stallscope.converters.summary.tables import waits_table
from summary_profiles import EXE, MS, MUTEX, SECOND, Tracee, empty, kernel, user

READ = kernel("ksys_read", "pipe_read")


def rows(profile: Profile, top: int = 15) -> list[str]:
    """The lines with numbers."""
    out = io.StringIO()
    Console(file=out, width=160).print(waits_table(summarize(profile), 160, top))
    return [line.strip() for line in out.getvalue().splitlines()[1:] if line[:20].strip()]


def test_threads_of_the_kernel_share_a_row() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait((*user(EXE, "f"), *MUTEX), "uninterruptible", 9 * SECOND, 3)
    for pid in range(90, 95):
        Tracee(profile, pid, "k", pid, "k").wait(kernel("kthread", f"f{pid}"), "idle", 10 * SECOND, 2)
    assert " ".join(rows(profile)[-1].split()) == "50.00 s 83.3 % 10 5 threads of the kernel"
    assert len(rows(profile)) == 2


def test_a_main_threads_row_stays() -> None:
    profile = empty()
    for tid in range(2, 12):
        stack = (*user(EXE, f"f{tid}"), *MUTEX)
        Tracee(profile, 1, "p", tid, f"name{chr(97 + tid)}").run(SECOND).wait(stack, "uninterruptible", 9 * SECOND, 3)
    Tracee(profile, 1, "p", 1, "p").run(9 * SECOND).wait((*user(EXE, "seldom"), *READ), "interruptible", SECOND, 3)
    assert any("seldom" in row for row in rows(profile, 2))
    assert len(rows(profile, 2)) == 3


def test_what_did_not_move_says_so() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait((*user(EXE, "f"), *MUTEX), "uninterruptible", 9 * SECOND, 3)
    Tracee(profile, 2, "q", 2, "q").wait((*user(EXE, "g"), *READ), "interruptible", 10 * SECOND, still=True)
    assert "did not move: g" in rows(profile)[-1]


def test_many_that_did_not_move_share_a_row() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait((*user(EXE, "f"), *MUTEX), "uninterruptible", 9 * SECOND, 3)
    for pid in range(2, 7):
        Tracee(profile, pid, "q", pid, "q").wait((*user(EXE, f"g{pid}"), *READ), "interruptible", 10 * SECOND)
    assert rows(profile)[-1].endswith("processes that did not move, in 5 places")
    assert len(rows(profile)) == 2


def test_ids_tell_threads_alike_apart() -> None:
    profile = empty()
    for pid, function in ((1, "slow"), (2, "fast")):
        stack = (*user(EXE, function), *READ)
        Tracee(profile, pid, "rank", pid, "rank").run(100 * MS).wait(stack, "interruptible", 9_900 * MS, 9)
    out = io.StringIO()
    Console(file=out, width=160).print(waits_table(summarize(profile), 160, 9))
    assert "rank (main) 1 99.0 %" in out.getvalue()
    assert "rank (main) 2 99.0 %" in out.getvalue()


@pytest.mark.parametrize("width", [160, 80])
def test_waits_that_were_sampled_and_not_counted(width: int) -> None:
    profile = empty()
    tracee = Tracee(profile, 1, "p", 1, "p")
    for name in ("first", "second"):
        tracee.wait((*user(EXE, name), *READ), "interruptible", 6 * SECOND, 0, least=0)
    out = io.StringIO()
    Console(file=out, width=width).print(waits_table(summarize(profile), width, 1))
    assert "first" in out.getvalue()
    assert "0 ns" not in out.getvalue()
    assert "0 ×" not in out.getvalue()
    assert (out.getvalue().count(" - ") >= 4) is (width == 160)


def test_who_had_the_cores_and_where_they_were_lost() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").wait((*user(EXE, "often"), *READ), "runnable-preempted", 6 * SECOND).wait(
        (*user(EXE, "seldom"), *READ), "runnable-preempted", 4 * SECOND
    )
    Tracee(profile, 2, "burn\x1b[2J", 2, "burn").run(9 * SECOND)
    profile.processes = [ProcessTimes(pid, name, cpus="0") for pid, name in ((1, "p"), (2, "burn\x1b[2J"))]
    out = io.StringIO()
    Console(file=out, width=160).print(waits_table(summarize(profile), 160, 15))
    assert "p (main) 100.0 %, 60.0 % of it in often → read; cores had by burn\\x1b[2J 0.90 of 1" in out.getvalue()


def test_processes_without_a_name_get_no_row_before_others() -> None:
    profile = empty()
    for tid in range(2, 12):
        stack = (*user(EXE, f"f{tid}"), *MUTEX)
        Tracee(profile, 1, "p", tid, f"name{chr(97 + tid)}").run(SECOND).wait(stack, "uninterruptible", 9 * SECOND, 3)
    for pid in range(20, 24):
        Tracee(profile, pid, "[unknown]", pid, "x").wait((*user(EXE, "g"), *READ), "interruptible", SECOND // 4, 3)
    assert not any(" g" in row for row in rows(profile, 2))
    assert [process.name for process in summarize(profile).processes] == ["p", "[unknown]"]


def test_a_text_in_place_of_functions_is_no_place() -> None:
    profile = empty()
    for name in ("[other stacks]", "seldom"):
        Tracee(profile, 1, "p", 1, "p").wait((*user(EXE, name),), "runnable-preempted", 5 * SECOND)
    profile.threads = profile.threads[:1]
    (wait,) = summarize(profile).waits
    assert wait.mostly[0] in ((), ("seldom",))
    assert "[other" not in rows(profile)[0]


def test_steps_of_one_system_call_share_a_row_with_the_longest_ones_function() -> None:
    profile = empty()
    main = Tracee(profile, 1, "p", 1, "p").run(SECOND)
    for number, function in enumerate(("bit_wait_io", "folio_wait_bit", "blkdev_issue_flush"), 1):
        stack = (*user(EXE, "save"), *kernel("__x64_sys_fdatasync", function))
        main.wait(stack, "uninterruptible", (number % 3 + 1) * SECOND, 5)
    (row,) = rows(profile)
    assert row.split()[:3] == ["6.000", "s", "85.7"]
    assert "save → fdatasync │ folio_wait_bit" in row


def test_the_longest_wait_has_a_row_before_those_of_main_threads() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait((*user(EXE, "serve"), *READ), "interruptible", 9 * SECOND, 3)
    for tid in (2, 3):
        stack = (*user(EXE, "work"), *MUTEX)
        Tracee(profile, 1, "p", tid, "w").run(SECOND).wait(stack, "uninterruptible", 9 * SECOND, 3)
    first, second = rows(profile, 1)[:2]
    assert "work → ioctl" in first
    assert "serve" in second
