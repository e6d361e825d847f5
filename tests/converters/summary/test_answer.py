from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.model import Frame, Profile, Stack
from stallscope.converters.rules.ranking import judge
from stallscope.converters.summary import answer
from stallscope.converters.summary.figures import Wait
from stallscope.converters.summary.summarize import summarize
from summary_profiles import (
    EXE,
    LIBC,
    MS,
    POOL,
    SECOND,
    SPIN,
    TOPK,
    Tracee,
    empty,
    facts_of,
    idle_pool,
    kernel,
    model_case,
    two_spinners_on_one_core,
    user,
)

SLEEP = (*user(EXE, "main", "nap"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))
FUTEX = kernel("__x64_sys_futex", "futex_wait")
TOPK_SENTENCE = (
    "84.2 % of the time of the 8 worker threads of demo is blocked in topk → cudaGetDeviceProperties → ioctl, "
    "waiting in __mutex_lock (8 processes, 31,200 waits, mean 2.16 ms, max 17.9 ms)"
)


def receiving(function: str) -> Stack:
    reading = kernel("__x64_sys_recvfrom", "unix_stream_recvmsg", "unix_stream_read_generic")
    return (*user(EXE, "main", function), *user(LIBC, "recv"), *reading)


def locking(function: str) -> Stack:
    return (*user(EXE, "work", function), *user(LIBC, "pthread_mutex_lock", "__lll_lock_wait"), *FUTEX)


def sentences(profile: Profile) -> tuple[str, ...]:
    return summarize(profile).answer


def test_the_lock_comes_before_the_longer_wait_for_the_worker() -> None:
    assert sentences(model_case()) == (
        f"{TOPK_SENTENCE}; meanwhile the 8 main threads wait for other threads for 97.0 % of their time in "
        "main → wait_for_worker → pthread_cond_wait.",
    )


def test_main_threads_that_do_nothing_else_are_told_all_the_same() -> None:
    (first,) = sentences(model_case(main_runs=50 * MS))
    assert first.startswith(TOPK_SENTENCE)
    assert "meanwhile the 8 main threads wait for other threads for 99.5 % of their time" in first


def test_the_victim_of_a_straggler_and_the_straggler() -> None:
    profile = empty()
    Tracee(profile, 7, "rank", 7, "rank").run(30 * MS).wait(
        receiving("all_reduce"), "interruptible", 9_970 * MS, 200, most=51 * MS
    )
    straggler = Tracee(profile, 8, "rank", 8, "rank").run(100 * MS)
    straggler.wait(SLEEP, "interruptible", 9_800 * MS, 200).wait(receiving("all_reduce"), "interruptible", 100 * MS, 90)
    assert sentences(profile) == (
        "99.7 % of the time of the main thread of rank (pid 7) is spent waiting for its peer in main → all_reduce → "
        "recv (200 waits, mean 49.9 ms, max 51.0 ms); meanwhile the main thread of rank (pid 8) sleeps for 98.0 % of "
        "its time in main → nap → clock_nanosleep.",
    )


def test_a_peer_that_is_not_traced_is_not_made_up() -> None:
    profile = empty()
    Tracee(profile, 7, "client", 7, "client").run(SECOND).wait(receiving("query"), "interruptible", 9 * SECOND, 200)
    Tracee(profile, 7, "client", 9, "timer").run(SECOND).wait(SLEEP, "interruptible", 9 * SECOND, 200)
    assert sentences(profile) == (
        "90.0 % of the time of the main thread of client is spent waiting for its peer in main → query → recv "
        "(200 waits, mean 45.0 ms, max 9.00 s).",
    )


def test_among_many_names_nobody_is_guessed() -> None:
    profile = empty()
    Tracee(profile, 7, "client", 7, "client").run(SECOND).wait(receiving("query"), "interruptible", 9 * SECOND, 200)
    for i in range(8):
        Tracee(profile, 20 + i, "abcdefgh"[i], 20 + i, "x").run(SECOND).wait(SLEEP, "interruptible", 9 * SECOND, 50)
    (first, *_) = sentences(profile)
    assert "query → recv" in first
    assert "meanwhile" not in first


def test_a_server_that_waits_for_events_is_not_busy() -> None:
    profile = empty()
    polling = (*user(EXE, "main", "serve"), *user(LIBC, "epoll_wait"), *kernel("__x64_sys_epoll_wait", "ep_poll"))
    Tracee(profile, 7, "app", 7, "app").run(SECOND).wait(polling, "interruptible", 9 * SECOND, 200)
    assert sentences(profile) == (
        "90.0 % of the time of the main thread of app is spent waiting in main → serve → epoll_wait "
        "(200 waits, mean 45.0 ms, max 9.00 s).",
    )


def test_two_threads_in_each_others_way_are_told_together() -> None:
    profile = empty()
    for tid, name in ((8, "left"), (9, "right")):
        Tracee(profile, 7, "app", tid, name).wait(locking(f"move_{name}"), "interruptible", 10 * SECOND, still=True)
    Tracee(profile, 7, "app", 7, "app").run(9 * SECOND).wait(SLEEP, "interruptible", SECOND, 50)
    assert sentences(profile) == (
        "2 threads of app (left, right) did not move at all, each of them waiting for a lock, in "
        "work → move_left → pthread_mutex_lock, work → move_right → pthread_mutex_lock: "
        "a deadlock, if they hold each other's.",
    )


def test_one_thread_that_waits_for_a_lock_for_ever_is_no_deadlock() -> None:
    profile = empty()
    Tracee(profile, 7, "app", 8, "left").wait(locking("move"), "interruptible", 10 * SECOND, still=True)
    Tracee(profile, 7, "app", 7, "app").run(9 * SECOND).wait(SLEEP, "interruptible", SECOND, 50)
    assert "deadlock" not in " ".join(sentences(profile))


def test_a_lock_with_all_its_waiters() -> None:
    profile = empty()
    for tid in range(10, 14):
        tracee = Tracee(profile, 7, "app", tid, f"w-{tid}").run(SECOND)
        tracee.wait(locking("allocate" if tid % 2 else "release"), "interruptible", 9 * SECOND, 100)
    Tracee(profile, 7, "app", 7, "app").run(SECOND).wait(SLEEP, "interruptible", 9 * SECOND, 50)
    assert sentences(profile)[0].startswith(
        "90.0 % of the time of the 4 w-* threads of app is blocked in allocate, release → pthread_mutex_lock, "
        "waiting in futex_wait (400 waits"
    )


def test_what_never_moved_stands_apart() -> None:
    profile = empty()
    fifo = (*user(EXE, "main", "report"), *user(LIBC, "open"), *kernel("__x64_sys_openat", "wait_for_partner"))
    for pid in (20, 21):
        Tracee(profile, pid, "reporter", pid, "reporter").wait(fifo, "interruptible", 10 * SECOND, still=True)
    Tracee(profile, 7, "app", 7, "app").run(4 * SECOND).wait(TOPK, "uninterruptible", 6 * SECOND, 100)
    first, *_, last = sentences(profile)
    assert first.startswith("60.0 % of the time of the main thread of app is blocked in topk")
    assert last == "2 processes did not move: 2 × reporter (in main → report → open)."


def test_only_what_never_moved() -> None:
    profile = empty()
    Tracee(profile, 7, "app", 7, "app").wait(receiving("query"), "interruptible", 10 * SECOND, still=True)
    first, *_ = sentences(profile)
    assert first.startswith("100.0 % of the time of the main thread of app is spent waiting for its peer")


def test_idle_pool_does_not_hide_the_lock() -> None:
    profile = idle_pool()
    profile.threads[-2].on_cpu = 1 * SECOND
    profile.threads[-1].on_cpu = 4 * SECOND
    assert sentences(profile) == (
        "60.0 % of the time of the main thread of srv is blocked in topk → cudaGetDeviceProperties → ioctl, "
        "waiting in __mutex_lock (1,000 waits, mean 6.00 ms, max 6.00 s).",
        "40.0 % of the time of the main thread of srv is on a core, 0.0 % is waiting for one.",
    )


def test_crowded_core() -> None:
    assert sentences(two_spinners_on_one_core()) == (
        "50.0 % of the time of both threads of spinner is on a core, 50.0 % is waiting for one.",
    )


def test_sleeper_sleeps_though_it_computes_a_little() -> None:
    profile = empty()
    Tracee(profile, 1, "p", 1, "p").run(SECOND).wait(SLEEP, "interruptible", 9 * SECOND, 90)
    first, *_ = sentences(profile)
    assert first.startswith("90.0 % of the time of the main thread of p is spent sleeping in main → nap")


def test_small_lock_in_a_large_wait_is_no_headline() -> None:
    profile = empty()
    for tid in range(1, 100):
        tracee = Tracee(profile, 1, "p", tid, "t").run(SECOND)
        tracee.wait(SLEEP, "interruptible", 8_900 * MS).wait(POOL, "interruptible", 100 * MS)
    Tracee(profile, 1, "p", 100, "t").run(SECOND).wait(TOPK, "uninterruptible", 9 * SECOND)
    first = sentences(profile)[0]
    assert "topk" not in first
    assert first.startswith("89.0 % of the time of 99 threads of p (main, t) is spent sleeping in main → nap")


def test_only_some_threads_of_a_name_wait() -> None:
    profile = empty()
    for tid in range(10, 22):
        tracee = Tracee(profile, 1, "p", tid, "worker").run(SECOND)
        if tid < 18:
            tracee.wait(TOPK, "uninterruptible", 9 * SECOND)
        else:
            tracee.run(9 * SECOND)
    first = sentences(profile)[0]
    assert first.startswith("90.0 % of the time of 8 of the 12 worker threads of p is blocked in topk")


def test_kernel_thread_has_no_frames() -> None:
    profile = empty()
    stack = kernel("ret_from_fork", "kthread", "jbd2_journal_commit_transaction")
    Tracee(profile, 9, "jbd2", 9, "jbd2").run(SECOND).wait(stack, "uninterruptible", 9 * SECOND, 3)
    assert sentences(profile) == (
        "90.0 % of the time of the main thread of jbd2 is blocked, waiting in jbd2_journal_commit_transaction "
        "(3 waits, mean 3.00 s, max 9.00 s).",
    )


def test_without_thread_times_no_share_is_claimed() -> None:
    profile = model_case()
    profile.threads.clear()
    first, *_ = sentences(profile)
    assert first.startswith("1 min 07 s of the time of the 8 worker threads of demo is blocked in topk")
    assert first.endswith(
        "meanwhile the 8 main threads wait for other threads for 1 min 18 s in "
        "main → wait_for_worker → pthread_cond_wait."
    )


def test_a_herd_that_is_woken_in_vain() -> None:
    profile = empty()
    for tid in range(10, 20):
        Tracee(profile, 1, "p", tid, f"c-{tid}").run(80 * MS).wait(POOL, "interruptible", 9_920 * MS, 10_000)
    Tracee(profile, 1, "p", 1, "p").run(3 * SECOND).wait(SLEEP, "interruptible", 7 * SECOND, 10_000)
    assert sentences(profile)[0] == (
        "The 10 c-* threads of p are woken 1,000 times a second each, and run for 8.00 µs before they wait again in "
        "pool_main → std::condition_variable::wait: if each time all are woken for what one can do, the others are "
        "woken in vain."
    )


def test_nothing() -> None:
    assert sentences(empty()) == ("No thread was seen.",)
    profile = empty()
    Tracee(profile, 1, "p", 1, "p")
    assert sentences(profile) == ("No wait was recorded.",)
    Tracee(profile, 1, "p", 2, "p").run(SECOND).wait(SPIN, "runnable-preempted", 1)
    assert sentences(profile) == (">99.9 % of the time of the p thread of p is on a core, <0.1 % is waiting for one.",)


POLL = (*user(EXE, "main", "wait_for_batch"), *user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))


def test_the_largest_cause_comes_before_running_that_takes_less() -> None:
    profile = empty()
    main = Tracee(profile, 7, "train", 7, "train").run(4 * SECOND)
    main.wait(POLL, "interruptible", 5 * SECOND + 500 * MS, 60).wait(POLL, "runnable-woken", 500 * MS, 60)
    first, second = sentences(profile)
    assert first.startswith("55.0 % of the time of the main thread of train is spent waiting in main → wait_for_batch")
    assert second == "40.0 % of the time of the main thread of train is on a core, 5.0 % is waiting for one."


def test_running_that_takes_most_comes_first() -> None:
    profile = empty()
    Tracee(profile, 7, "train", 7, "train").run(7 * SECOND).wait(POLL, "interruptible", 3 * SECOND, 60)
    assert (
        sentences(profile)[0]
        == "70.0 % of the time of the main thread of train is on a core, 0.0 % is waiting for one."
    )


def test_what_workers_wait_for_is_told_where_the_main_thread_waits_for_requests() -> None:
    profile = empty()
    Tracee(profile, 7, "web", 7, "web").run(MS).wait(POLL, "interruptible", 9_999 * MS, 20)
    for tid in (8, 9, 10):
        worker = Tracee(profile, 7, "web", tid, "web").run(SECOND)
        worker.wait(receiving("read_request"), "interruptible", 9 * SECOND, 90)
    assert sentences(profile)[0].startswith(
        "90.0 % of the time of the 3 web threads of web is spent waiting for their peers in main → read_request → recv"
    )


def test_the_sum_over_callers_leads() -> None:
    profile = empty()
    main = Tracee(profile, 7, "db", 7, "db").run(SECOND)
    for function in ("journal", "index", "audit"):
        stack = (*user(EXE, "main", function), *user(LIBC, "fsync"), *kernel("__x64_sys_fsync", "folio_wait_bit"))
        main.wait(stack, "uninterruptible", 2 * SECOND, 20)
    main.wait(receiving("query"), "interruptible", 3 * SECOND, 30)
    assert sentences(profile)[0] == (
        "60.0 % of the time of the main thread of db is blocked in audit, index, journal → fsync, waiting in "
        "folio_wait_bit (60 waits, mean 100 ms, max 2.00 s)."
    )


def test_a_wait_for_events_leads_where_running_takes_less_but_not_on_a_whole_host() -> None:
    epoll = (*user(EXE, "main", "serve"), *user(LIBC, "epoll_wait"), *kernel("__x64_sys_epoll_wait", "ep_poll"))
    profile = empty()
    Tracee(profile, 7, "web", 7, "web").run(4 * SECOND).wait(epoll, "interruptible", 6 * SECOND, 90)
    assert sentences(profile)[0].startswith("60.0 % of the time of the main thread of web is spent waiting in main →")
    Tracee(profile, 9, "kworker", 9, "kworker").wait(kernel("kthread", "worker_thread"), "idle", 10 * SECOND)
    assert sentences(profile)[0].startswith("40.0 % of the time of")


def test_the_thread_that_waits_most_is_the_victim() -> None:
    profile = empty()
    Tracee(profile, 7, "app", 7, "app").run(SECOND).wait(receiving("ask"), "interruptible", 9 * SECOND, 90)
    Tracee(profile, 8, "app", 8, "app").run(2 * SECOND).wait(receiving("ask"), "interruptible", 8 * SECOND, 90)
    facts = facts_of(profile)
    assert answer.answer(summarize(profile), facts, judge(facts)).victim == 7


def test_nothing_but_idle_threads() -> None:
    profile = empty()
    thread = Tracee(profile, 1, "p", 1, "p").run(SECOND).wait(POOL, "interruptible", 8 * SECOND, 9)
    thread.wait(SLEEP, "interruptible", 100 * MS, 9)
    summary = summarize(profile)
    idle, other = (replace(wait, idle=wait.time > SECOND) for wait in summary.waits)

    def said(*waits: Wait) -> str:
        return answer._nothing(replace(summary, waits=waits))

    assert said(idle) == "Nothing but idle threads: 1 thread, waiting for work all the time."
    assert said(idle, other) == "Hardly anything but idle threads: 1 thread, waiting for work nearly all the time."
    assert said(idle, replace(other, time=SECOND)) == "No wait of significance was recorded."
    assert said() == "No wait was recorded."


def test_nothing_but_threads_that_sleep_in_steady_intervals() -> None:
    """Sleeping threads may wait for work, or ask again and again for something."""
    profile = empty()
    thread = Tracee(profile, 1, "p", 1, "p").run(SECOND).wait(SLEEP, "interruptible", 4 * SECOND, 40)
    thread.wait(POOL, "interruptible", 3 * SECOND, 9)
    summary = summarize(profile)
    by = {"sleep": "periodic", "thread": "parked"}
    asleep, pool = (replace(wait, idle=True, idle_by=by[wait.kind]) for wait in summary.waits)

    def said(*waits: Wait) -> str:
        return answer._nothing(replace(summary, waits=waits))

    place = " → ".join(asleep.frames)
    assert said(asleep, pool) == (
        f"Nothing but threads that sleep in steady intervals, most of it in {place} (40 sleeps, mean 100 ms): "
        "they have nothing to do, or ask again and again for something that does not happen."
    )
    assert said(replace(asleep, time=3 * SECOND), pool).startswith("Nothing but idle threads")
    assert said(replace(asleep, idle_by="")).startswith("Nothing but idle threads")


def test_a_wait_of_which_nothing_was_reported_is_in_no_sentence() -> None:
    profile = empty()
    untold = (Frame("[switch not reported]", "other"),)
    Tracee(profile, 1, "[unknown]", 1, "[unknown]").run(10 * MS).wait(untold, "other", 9_000 * MS, 31)
    Tracee(profile, 2, "app", 2, "app").run(9_700 * MS).wait(SLEEP, "interruptible", 300 * MS, 3)
    said = sentences(profile)
    assert not any("[unknown]" in sentence or "not reported" in sentence for sentence in said)
    alone = empty()
    Tracee(alone, 1, "[unknown]", 1, "[unknown]").run(10 * MS).wait(untold, "other", 9_000 * MS, 31)
    assert summarize(alone).waits[0].kind == "unknown"
    assert not any("blocked" in sentence for sentence in sentences(alone))


def test_one_other_thread_only_waits() -> None:
    profile = empty()
    Tracee(profile, 7, "spin", 7, "spin").run(6 * SECOND)
    waiter = Tracee(profile, 7, "spin", 8, "waiter")
    waiter.wait(POOL, "interruptible", 10 * SECOND, 1)
    (told, *_) = sentences(profile)
    assert "the main thread of spin is on a core" in told


@pytest.mark.parametrize("name", ["[lost]", "[no stack]", "[not sampled]", "[other stacks]", "[stopped by eu-stack]"])
@pytest.mark.parametrize("state", ["interruptible", "uninterruptible", "other"])
def test_time_of_an_unknown_place_is_in_no_sentence(name: str, state: str) -> None:
    profile = empty()
    thread = Tracee(profile, 1, "p", 1, "p").run(SECOND)
    thread.wait((Frame(name, "other"),), state, 5 * SECOND, 69).wait(POOL, "interruptible", 4 * SECOND, 20)
    sentences = summarize(profile).answer
    assert not any("[" in sentence for sentence in sentences)
    unclear = [sentence for sentence in sentences if "it is not known where they were" in sentence]
    # An interruptible wait without a stack is, as a rule, that of an idle thread.
    is_known = name == "[stopped by eu-stack]" or (name, state) == ("[no stack]", "interruptible")
    assert len(unclear) == (not is_known)
    assert "pool_main" in sentences[len(unclear)]
    alone = empty()
    Tracee(alone, 1, "p", 1, "p").run(SECOND).wait((Frame(name, "other"),), state, 9 * SECOND, 69)
    assert not any("[" in sentence for sentence in summarize(alone).answer)
    still = empty()
    Tracee(still, 1, "p", 1, "p").wait((Frame(name, "other"),), state, 10 * SECOND, 1)
    assert not any("[" in sentence for sentence in summarize(still).answer)


def test_what_others_do_meanwhile_is_told_once() -> None:
    """Workers wait for two places of a disk, and the main thread for them."""
    profile = empty()
    join = (*user(EXE, "main", "next_batch"), *user(LIBC, "pthread_cond_wait"), *FUTEX)
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(join, "interruptible", 9 * SECOND, 90)
    worker = Tracee(profile, 1, "app", 2, "w")
    for name, time in (("read", 5 * SECOND), ("open", 4 * SECOND)):
        stack = (*user(EXE, "work", "load"), *user(LIBC, name), *kernel(f"__x64_sys_{name}", "request_wait_answer"))
        worker.wait(stack, "uninterruptible", time, 50)
    first, second, *_ = sentences(profile)
    assert "load → read" in first and "; meanwhile the main thread " in first
    assert "load → open" in second and "meanwhile" not in second
