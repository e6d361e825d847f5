"""Waits with one cause, and those that share a row of the table."""

from __future__ import annotations

from stallscope.converters.facts.wait_causes import effect_cause, held_cause, row_of
from stallscope.converters.facts.wait_kinds import PEER
from stallscope.converters.facts.wait_sums import Place
from summary_profiles import place_of


def place(*frames: str, kernel: str, state: str = "uninterruptible") -> Place:
    return place_of(frames, kernel, state)


def test_a_system_call_is_one_cause_whoever_calls_and_wherever_the_kernel_waits() -> None:
    one = held_cause("server", place("append", "fsync", kernel="folio_wait_bit"))
    assert one == held_cause("server", place("journal", "fsync", kernel="bit_wait_io"))
    assert one != held_cause("other", place("append", "fsync", kernel="folio_wait_bit"))
    assert one != held_cause("server", place("append", "open", kernel="folio_wait_bit"))


def test_an_ioctl_is_as_many_causes_as_the_kernel_has_places() -> None:
    lock, wait = (place("topk", "ioctl", kernel=name) for name in ("nv_a", "nv_b"))
    assert held_cause("train", lock) != held_cause("train", wait)
    assert held_cause("train", lock) == held_cause("train", place("other", "ioctl", kernel="nv_a"))


def test_a_process_is_stopped_for_one_cause_wherever_it_was() -> None:
    one, other = (place(name, "read", kernel=kernel, state="stopped") for name, kernel in (("a", "x"), ("b", "y")))
    assert held_cause("train", one) == held_cause("train", other) != held_cause("other", one)


def test_a_lock_of_the_program_is_one_cause_for_all_callers_in_a_process() -> None:
    def waits(caller: str) -> Place:
        return place(caller, "pthread_mutex_lock", kernel="futex_wait", state="interruptible")

    assert held_cause("a", waits("read")) == held_cause("a", waits("write"))
    assert held_cause("a", waits("read")) != held_cause("b", waits("read"))


def test_a_lock_of_the_kernel_is_one_cause_for_all_processes() -> None:
    waits = place("save", "rename", kernel="rwsem_down_write_slowpath")
    assert held_cause("a", waits) == held_cause("b", waits)
    assert held_cause("a", waits) != held_cause("a", place("save", "unlink", kernel="rwsem_down_write_slowpath"))


def test_waits_for_a_peer_go_by_the_call_and_others_by_the_callers() -> None:
    first, second = (
        place(caller, "recv", kernel="sk_wait_data", state="interruptible") for caller in ("login", "query")
    )
    assert first.kind == PEER
    assert effect_cause("client", first) == effect_cause("client", second)
    one, other = (
        place(caller, "nanosleep", kernel="do_nanosleep", state="interruptible") for caller in ("poll_a", "poll_b")
    )
    assert effect_cause("client", one) != effect_cause("client", other)


def test_one_row_for_a_call_that_waits_in_several_steps() -> None:
    assert row_of(place("save", "fsync", kernel="a")) == row_of(place("save", "fsync", kernel="b"))
    assert row_of(place("save", "fsync", kernel="a")) != row_of(place("log", "fsync", kernel="a"))
    assert row_of(place("save", "read", kernel="a")) != row_of(place("save", "read", kernel="b"))
    assert row_of(place("save", "fsync", kernel="a")) != row_of(
        place("save", "fsync", kernel="a", state="interruptible")
    )
