from __future__ import annotations

from stallscope.converters.facts.wait_sums import Place, add_up_waits, merged_threads
from stallscope.converters.model import Frame
from stallscope.converters.model.sites import Site
from summary_profiles import POOL, SECOND, SPIN, TOPK, Tracee, empty


def test_equal_places_of_a_thread_are_one() -> None:
    profile = empty()
    tracee = Tracee(profile, 1, "p", 2, "w")
    tracee.wait(POOL, "interruptible", 10, 2, least=3, most=7).wait(POOL, "interruptible", 5, 1, least=5, still=True)
    threads = merged_threads(profile.threads)
    ((place, total),) = add_up_waits(profile, threads)[1, 2].items()
    assert place.site == Site(("pool_main", "std::condition_variable::wait"), "futex_wait")
    assert (place.state, place.kind) == ("interruptible", "thread")
    assert (total.time, total.count, total.min, total.max) == (15, 3, 3, 7)
    assert (total.open_time, total.open_count) == (5, 1)


def test_a_thread_that_only_samples_know_has_no_times() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 2, "w").wait(TOPK, "uninterruptible", SECOND)
    profile.threads.clear()
    threads = merged_threads(profile.threads)
    assert set(add_up_waits(profile, threads)) == {(1, 2)}
    assert (threads[1, 2].process, threads[1, 2].thread, threads[1, 2].wall) == ("p", "w", 0)


def test_one_who_waits_for_a_core_does_not_wait_in_the_kernel() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 2, "w").wait(SPIN, "runnable-preempted", SECOND)
    (place,) = add_up_waits(profile, merged_threads(profile.threads))[1, 2]
    assert (place.site.kernel, place.kind) == ("", "core")
    assert place.has_user_frames


def test_what_stands_for_a_stack_is_no_function() -> None:
    def has_user_frames(*stack: Frame) -> bool:
        profile = empty()
        Tracee(profile, 1, "p", 2, "w").wait(stack, "other", SECOND)
        (place,) = add_up_waits(profile, merged_threads(profile.threads))[1, 2]
        return place.has_user_frames

    assert not has_user_frames(Frame("[no stack]", "other"))
    assert has_user_frames(Frame("[app]", "other"))
    assert not has_user_frames(Frame("worker_thread", "kernel"))


def test_the_stack_of_a_place_is_that_of_most_of_its_time() -> None:
    """Two functions of the C library below the same one of the program are one place."""
    short, long = ((*POOL[:-1], Frame(name, "kernel"), POOL[-1]) for name in ("do_futex", "__x64_sys_futex"))
    profile = empty()
    Tracee(profile, 1, "p", 2, "w").wait(short, "interruptible", 10).wait(long, "interruptible", 20)
    Tracee(profile, 1, "p", 3, "w").wait(short, "interruptible", 15)
    threads = merged_threads(profile.threads)
    sums = add_up_waits(profile, threads)
    (place,) = {place for places in sums.values() for place in places}
    assert place.stack == short, "25 ns of all threads together"
    assert Place("other", place.site, place.wait).stack == ()


def test_equal_stacks_of_a_place_are_one() -> None:
    """A trace makes each stack anew, a file that is read shares them: the stack of most of the time is the same."""
    other = (*POOL[:-1], Frame("do_futex", "kernel"), POOL[-1])
    profile = empty()
    worker = Tracee(profile, 1, "p", 2, "w").wait(other, "interruptible", 20)
    for _ in range(3):
        worker.wait((*POOL,), "interruptible", 10)
    (places,) = add_up_waits(profile, merged_threads(profile.threads)).values()
    assert [place.stack for place in places] == [POOL], "30 of 50 ns"
