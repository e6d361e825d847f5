from __future__ import annotations

from stallscope.converters.facts.standing import standing
from stallscope.converters.facts.wait_sums import add_up_waits, merged_threads
from stallscope.converters.model import Profile, Stack
from stallscope.converters.summary.finding import Finding
from stallscope.converters.summary.findings import Findings
from summary_profiles import EXE, LIBC, MS, MUTEX, POOL, SECOND, TOPK, Tracee, empty, kernel, model_case, user

SLEEP = (*user(EXE, "main", "nap"), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))
READ = (*user(EXE, "main", "fetch"), *user(LIBC, "read"), *kernel("ksys_read", "vfs_read", "pipe_read"))
CHILD = (*user(EXE, "main", "run_tool"), *user(LIBC, "wait4"), *kernel("kernel_wait4", "do_wait"))
POLL = (*user(EXE, "main", "loop"), *user(LIBC, "poll"), *kernel("__x64_sys_poll", "do_sys_poll"))


def found(profile: Profile) -> Findings:
    threads = merged_threads(profile.threads)
    sums = add_up_waits(profile, threads)
    return Findings(sums, threads, standing(sums, threads), profile.duration_ns)


def cause(profile: Profile) -> Finding | None:
    findings = found(profile)
    return findings.cause_of(findings.effects()[0])


def waiting(stack: Stack, *others: tuple[int, int, str, Stack, int]) -> Profile:
    """Process 1 waits nearly always; others: pid, tid, name, where, for how many ms, and on a core for the rest."""
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(100 * MS).wait(stack, "interruptible", 9_900 * MS, 500)
    for pid, tid, name, where, ms in others:
        tracee = Tracee(profile, pid, "app" if pid == 1 else name, tid, name).run((10_000 - ms) * MS)
        if ms:
            tracee.wait(where, "interruptible", ms * MS, 500)
    return profile


def test_the_lock_of_all_processes_is_one_finding() -> None:
    (held,) = found(model_case()).held_up()
    assert (held.kind, len(held.threads), held.count) == ("lock", 8, 31_200)
    assert (held.time, held.wall) == (8 * 8_420 * MS, 80 * SECOND)
    assert held.most == 8_420 * MS


def test_who_waits_there_seldom_is_not_counted() -> None:
    profile = model_case()
    tracee = Tracee(profile, 4711, "demo", 6000, "other").run(9_900 * MS)
    tracee.wait(TOPK, "uninterruptible", 100 * MS)
    assert (4711, 6000) not in found(profile).held_up()[0].threads


def test_a_few_others_do_not_change_where_it_is() -> None:
    profile = model_case()
    stack = (*user(EXE, "little"), *user(LIBC, "ioctl"), *MUTEX)
    Tracee(profile, 9, "other", 9, "other").run(MS).wait(stack, "uninterruptible", 100 * MS)
    (held,) = found(profile).held_up()
    assert len(held.threads) == 9
    assert [place.site.frames[0] for place in held.places] == ["topk"]


def test_main_threads_that_wait() -> None:
    (effect,) = found(model_case()).effects()
    assert effect.kind == "thread"
    assert effect.pids == set(range(4711, 4719))


def test_another_thread_is_of_the_same_process() -> None:
    profile = waiting(POOL, (1, 2, "loader", SLEEP, 9_500), (5, 5, "busy", SLEEP, 0))
    told = cause(profile)
    assert told
    assert (told.kind, told.threads) == ("sleep", ((1, 2),))


def test_a_peer_is_another_process() -> None:
    told = cause(waiting(READ, (1, 2, "loader", SLEEP, 9_900), (5, 5, "server", SLEEP, 6_000)))
    assert told
    assert (told.kind, told.threads) == ("sleep", ((5, 5),))


def test_who_computes_may_be_the_cause() -> None:
    told = cause(waiting(CHILD, (5, 5, "tool", SLEEP, 1_000)))
    assert told
    assert (told.kind, told.time, told.runnable) == ("cpu", 9 * SECOND, 0)


def test_a_thread_that_waits_for_outside_may_be_the_cause_inside() -> None:
    told = cause(waiting(POOL, (1, 2, "client", READ, 9_000)))
    assert told
    assert told.kind == "peer"


def test_nobody_is_the_cause_who_waits_for_others_or_does_little() -> None:
    assert cause(waiting(READ, (5, 5, "server", POOL, 9_900))) is None
    assert cause(waiting(POLL, (1, 2, "worker", SLEEP, 5_000))) is None
    assert cause(waiting(READ)) is None


def test_a_polling_thread_waits_for_who_computes() -> None:
    told = cause(waiting(SLEEP, (1, 2, "compute", SLEEP, 0)))
    assert told
    assert (told.kind, told.threads) == ("cpu", ((1, 2),))
    assert cause(waiting(SLEEP, (1, 2, "sleeper", READ, 9_900))) is None


def test_the_straggler_among_processes_alike() -> None:
    profile = empty()
    for pid, sleeps in ((1, 0), (2, 0), (3, 6)):
        tracee = Tracee(profile, pid, "rank", pid, "rank").run(100 * MS)
        tracee.wait(POOL, "interruptible", (10 - sleeps) * SECOND - 100 * MS, 200)
        Tracee(profile, pid, "rank", pid + 10, "io").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 200)
        if sleeps:
            tracee.wait(SLEEP, "interruptible", sleeps * SECOND, 200)
    findings = found(profile)
    effect = findings.effects()[0]
    told = findings.cause_of(effect)
    assert told
    assert (told.kind, told.threads) == ("sleep", ((3, 3),))
    assert findings.without(effect, told).pids == {1, 2}
    assert findings.without(effect, effect) is effect


def test_processes_that_did_not_move() -> None:
    profile = waiting(READ)
    Tracee(profile, 9, "stuck", 9, "stuck").wait(POOL, "interruptible", 10 * SECOND)
    Tracee(profile, 9, "stuck", 10, "helper").wait(POOL, "interruptible", 10 * SECOND)
    findings = found(profile)
    assert findings.still_pids == {9}
    assert findings.where_of(9) == "stuck (in pool_main → std::condition_variable::wait)"
    assert findings.are_still([(9, 9), (9, 10)])
    assert not findings.are_still([(9, 9), (1, 1)])


def test_what_others_than_the_still_ones_wait_for_comes_first() -> None:
    profile = waiting(READ)
    Tracee(profile, 9, "stuck", 9, "stuck").wait(POLL, "interruptible", 10 * SECOND)
    assert [effect.kind for effect in found(profile).effects()] == ["peer"]
    profile = empty()
    Tracee(profile, 9, "stuck", 9, "stuck").wait(POLL, "interruptible", 10 * SECOND)
    assert [effect.kind for effect in found(profile).effects()] == ["events"]


def test_processes_at_work_come_before_those_that_hardly_move() -> None:
    profile = waiting(READ)
    Tracee(profile, 9, "cron", 9, "cron").run(MS).wait(SLEEP, "interruptible", 9_999 * MS, 10)
    assert [effect.pids for effect in found(profile).effects()] == [{1}]


def test_busy_threads_by_name() -> None:
    profile = waiting(READ, (1, 2, "w-1", SLEEP, 0), (1, 3, "w-2", SLEEP, 0))
    first, *_ = found(profile).busy()
    assert (first.kind, first.threads, first.time) == ("cpu", ((1, 2), (1, 3)), 20 * SECOND)


def fsync(function: str, kernel_function: str = "folio_wait_bit") -> Stack:
    return (*user(EXE, "main", function), *user(LIBC, "fsync"), *kernel("__x64_sys_fsync", kernel_function))


def test_one_cause_is_summed_over_its_callers_and_steps() -> None:
    profile = empty()
    tracee = Tracee(profile, 1, "db", 1, "db").run(4 * SECOND)
    for function in ("journal", "index", "audit"):
        tracee.wait(fsync(function), "uninterruptible", SECOND, 10)
        tracee.wait(fsync(function, "bit_wait_io"), "uninterruptible", SECOND, 10)
    (held,) = found(profile).held_up()
    assert (held.time, held.count, len(held.places)) == (6 * SECOND, 60, 6)


def test_different_devices_behind_one_call_are_two_causes() -> None:
    profile = empty()
    tracee = Tracee(profile, 1, "app", 1, "app").run(2 * SECOND)
    for function in ("request_wait_answer", "nv_wait"):
        stack = (*user(EXE, "main", "call"), *user(LIBC, "ioctl"), *kernel("__x64_sys_ioctl", function))
        tracee.wait(stack, "uninterruptible", 4 * SECOND, 10)
    assert [held.time for held in found(profile).held_up()] == [4 * SECOND, 4 * SECOND]


def test_reads_of_several_callers_are_one_wait_but_of_the_main_thread_only() -> None:
    other = (*user(EXE, "serve", "fetch_more"), *READ[2:])
    profile = waiting(READ, (1, 2, "client", (*user(EXE, "elsewhere"), *READ[2:]), 9_000))
    profile.samples[0] = profile.samples[0]._replace(values=(5_000 * MS, 300, 1, SECOND))
    main = profile.samples[0]
    profile.samples.append(main._replace(stack=other, values=(4_900 * MS, 200, 1, SECOND)))
    (effect,) = found(profile).effects()
    assert (effect.time, effect.threads) == (9_900 * MS, ((1, 1),))


def test_the_longest_wait_of_threads_beside_the_main_one() -> None:
    profile = waiting(POLL, (1, 2, "w", READ, 8_000), (1, 3, "w", READ, 8_000), (1, 4, "idle", POOL, 10_000))
    workers = found(profile).workers()
    assert workers
    assert (workers.kind, workers.threads, workers.time) == ("peer", ((1, 2), (1, 3)), 16 * SECOND)


def test_poll_beside_work_is_no_event_loop() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(POLL, "interruptible", 9 * SECOND, 50)
    findings = found(profile)
    assert findings.waits_beside_work(findings.effects()[0])
    findings = found(waiting(POLL))
    assert not findings.waits_beside_work(findings.effects()[0])
    epoll = (*POLL[:2], *user(LIBC, "epoll_wait"), *kernel("__x64_sys_epoll_wait", "ep_poll"))
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(SECOND).wait(epoll, "interruptible", 9 * SECOND, 50)
    findings = found(profile)
    assert not findings.waits_beside_work(findings.effects()[0])


def test_sleeps_of_several_callers_are_several_waits() -> None:
    profile = empty()
    main = Tracee(profile, 1, "app", 1, "app").run(SECOND)
    for function in ("pace", "retry"):
        stack = (*user(EXE, "main", function), *kernel("__x64_sys_clock_nanosleep", "do_nanosleep"))
        main.wait(stack, "interruptible", 4 * SECOND, 10)
    assert [effect.time for effect in found(profile).effects()] == [4 * SECOND, 4 * SECOND]
