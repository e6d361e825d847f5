from __future__ import annotations

import pytest
import tcp_profiles
from idle_hosts import CLIENT, LOOP, Host
from stallscope.converters.rules.ranking import judge
from stallscope.converters.scan.process_verdicts import ProcessVerdict, idle_names, process_verdicts
from stallscope.converters.scan.report import process_json
from summary_profiles import EXE, LIBC, MS, POOL, READ, SECOND, Tracee, empty, facts_of, kernel, model_case, user
from verdict_profiles import COMPUTE, FSYNC, LOCK, SLEEP, one, yielding
from wait_graphs import chained, profile_of, with_extremes

SLEEPING = (*user(EXE, "main", "pause"), *user(LIBC, "clock_nanosleep"), *kernel("do_nanosleep"))
RECV = (*user(EXE, "main", "ask"), *user(LIBC, "recv"), *kernel("__x64_sys_recvfrom", "unix_stream_read_generic"))


def test_each_process_has_its_own_verdict() -> None:
    profile = one(FSYNC, 9 * SECOND, state="uninterruptible", runs=SECOND)
    Tracee(profile, 2, "client", 2, "client").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 900)
    Tracee(profile, 3, "cron", 3, "cron").wait(READ, "interruptible", 10 * SECOND, 1)
    found = {each.name: each for each in process_verdicts(facts_of(profile))}
    assert {name: each.kind for name, each in found.items()} == {"app": "io", "client": "peer", "cron": "idle"}
    assert found["app"].share == pytest.approx(0.9)
    assert found["app"].frames == ("main", "save", "fsync")
    assert found["app"].kernel == "folio_wait_bit"
    assert found["cron"].share is None


def test_the_network_of_a_process() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[0].links = [tcp_profiles.FAR]
    rows = {each.name: each.network for each in process_verdicts(facts_of(profile))}
    assert rows["client"] == "a round trip on that connection takes 80.0 ms, which explains 88.9 % of the waits"
    profile.objects[0].links = []
    profile.objects[0].retransmissions = 9
    (row,) = (each for each in process_verdicts(facts_of(profile)) if each.name == "client")
    assert row.network == "9 segments of that connection were sent again meanwhile"
    assert process_json(row)["network"] == row.network
    profile.objects[0].retransmissions = 0
    assert not any(each.network for each in process_verdicts(facts_of(profile)))


def test_processes_that_do_the_same_are_one_row() -> None:
    (row,) = process_verdicts(facts_of(model_case()))
    assert row.pids == tuple(range(4711, 4719))
    assert row.kind == "driver"
    assert row.time == 8 * 8_420 * MS


def test_what_differs_in_its_place_has_rows_of_its_own() -> None:
    profile = one(FSYNC, 9 * SECOND, state="uninterruptible", runs=SECOND)
    other = (*user(EXE, "main", "load"), *FSYNC[2:])
    Tracee(profile, 2, "app", 2, "app").run(5 * SECOND).wait(other, "uninterruptible", 5 * SECOND, 900)
    rows = process_verdicts(facts_of(profile))
    assert [each.pids for each in rows] == [(1,), (2,)]


def test_idle_processes_come_last_and_are_told_by_name() -> None:
    profile = empty()
    for pid in (1, 2):
        Tracee(profile, pid, "cron", pid, "cron").wait(READ, "interruptible", 10 * SECOND, 1)
    Tracee(profile, 3, "app", 3, "app").run(10 * SECOND)
    rows = process_verdicts(facts_of(profile))
    assert [each.name for each in rows] == ["app", "cron"]
    assert idle_names(rows) == [("cron", 2)]


def test_share_of_a_process_that_runs_is_of_all_its_threads() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").run(10 * SECOND)
    Tracee(profile, 1, "app", 2, "helper").run(10 * SECOND)
    (row,) = process_verdicts(facts_of(profile))
    assert (row.kind, row.time, row.wall, row.share) == ("cpu", 20 * SECOND, 20 * SECOND, 1.0)


def by_pid(host: Host) -> dict[int, ProcessVerdict]:
    return {each.pids[0]: each for each in process_verdicts(facts_of(host.made()))}


def test_who_ends_most_of_the_waits_of_a_process() -> None:
    host = Host().wait(7, 7, RECV, 900, CLIENT, each=9).wait(20, 20, LOOP, 100, ("[timer]", 0, ""), each=1)
    ender = by_pid(host)[7].ender
    assert ender
    assert (ender.pids, ender.time) == ((20,), 900 * MS)


def test_what_somebody_ends_is_a_part_of_all_waits_of_the_threads() -> None:
    """Waits of its threads are in more places than that of the verdict, and one process ends all of them."""
    host = Host().wait(7, 7, RECV, 400, CLIENT, each=9).wait(7, 7, FSYNC, 500, CLIENT, each=9)
    row = by_pid(host)[7]
    assert row.ender
    assert (row.time, row.ender.time, row.waits) == (500 * MS, 900 * MS, 900 * MS)
    host.wait(7, 7, RECV, 50, ("[timer]", 0, ""), each=9)
    assert by_pid(host)[7].waits == 950 * MS


def test_waits_of_processes_that_do_the_same_are_added_up() -> None:
    host = Host()
    for pid in (7, 8):
        host.wait(pid, pid, RECV, 400, CLIENT, each=9).wait(pid, pid, COMPUTE, 100, ("[timer]", 0, ""), each=9)
    profile = host.made()
    for times in profile.threads:
        times.process = "app"
    (row,) = process_verdicts(facts_of(profile))
    assert row.ender
    assert (row.pids, row.ender.time, row.waits) == ((7, 8), 800 * MS, 1000 * MS)


def test_who_ends_little_is_not_named() -> None:
    host = Host().wait(7, 7, RECV, 250, CLIENT, each=9).wait(7, 7, RECV, 650, ("[still waiting]", 0, ""), each=9)
    assert by_pid(host)[7].ender is None


def test_threads_of_the_process_itself_are_no_enders() -> None:
    host = Host().wait(7, 7, RECV, 900, ("app-7", 8, "helper"), each=9).wait(7, 8, COMPUTE, 1, ("[timer]", 0, ""))
    assert by_pid(host)[7].ender is None


def test_a_device_can_end_waits() -> None:
    profile = with_extremes(profile_of(chained(7, 7, 900 * MS, ("[interrupt nvme0q1]", 0, ""), own=FSYNC)))
    profile.samples = [sample._replace(values=(900 * MS, 100, 1, 9 * MS)) for sample in profile.samples]
    Tracee(profile, 7, "app", 7, "app").run(100 * MS).times.blocked["interruptible"] = 900 * MS
    profile.threads[0].wall = SECOND
    (row,) = process_verdicts(facts_of(profile))
    assert row.ender
    assert (row.ender.name, row.ender.pids) == ("[interrupt nvme0q1]", ())


def test_who_the_first_sentence_is_on_is_not_idle() -> None:
    profile = empty()
    Tracee(profile, 1, "hangs", 1, "hangs").wait(LOCK, "interruptible", 10 * SECOND, 1)
    Tracee(profile, 2, "cron", 2, "cron").wait(READ, "interruptible", 10 * SECOND, 1)
    facts = facts_of(profile)
    first = judge(facts).first
    assert first
    assert first.kind == "lock"
    assert {each.name: each.kind for each in process_verdicts(facts, first=first)} == {"hangs": "lock", "cron": "idle"}


def test_a_process_that_hangs_is_idle_unless_it_is_known_to_be_awake() -> None:
    """A process that only waits for others is idle in any case."""
    profile = empty()
    Tracee(profile, 1, "hangs", 1, "hangs").wait(LOCK, "interruptible", 10 * SECOND, 1)
    Tracee(profile, 2, "cron", 2, "cron").wait(READ, "interruptible", 10 * SECOND, 1)
    facts = facts_of(profile)
    assert {each.name: each.kind for each in process_verdicts(facts)} == {"hangs": "idle", "cron": "idle"}
    found = process_verdicts(facts, (1, 2))
    assert {each.name: (each.kind, each.share) for each in found} == {"hangs": ("lock", 1.0), "cron": ("idle", None)}


def with_a_server(workers: int, busy: int) -> ProcessVerdict:
    """The row of a server whose main thread runs for ``busy`` s of 10 s, and whose ``workers`` mostly wait for it."""
    profile = empty()
    Tracee(profile, 1, "client", 1, "client").run(100 * MS).wait(RECV, "interruptible", 9_900 * MS, 500)
    main = Tracee(profile, 5, "server", 5, "server").run(busy * SECOND)
    main.wait(FSYNC, "uninterruptible", (10 - busy) * SECOND, 9)
    for i in range(workers):
        worker = Tracee(profile, 5, "server", 50 + i, "worker").run(2 * SECOND)
        worker.wait(POOL, "interruptible", 8 * SECOND, 500)
    facts = facts_of(profile)
    rows = process_verdicts(facts, first=judge(facts).first)
    return next(each for each in rows if each.pids == (5,))


def test_the_row_of_who_keeps_others_waiting_is_what_the_first_sentence_tells() -> None:
    row = with_a_server(workers=4, busy=8)
    assert (row.kind, row.time, row.wall) == ("cpu", 8 * SECOND, 10 * SECOND)
    assert "the main thread of server" in row.told


def test_the_row_of_whom_the_first_sentence_does_not_tell_is_its_own() -> None:
    """The main thread of the server does not run for long enough to be the cause."""
    assert with_a_server(workers=4, busy=1).kind != "cpu"


def test_who_ends_other_waits_does_not_end_a_sleep() -> None:
    """A server sleeps, and waits for its client for the rest."""
    host = Host().wait(7, 7, SLEEPING, 600, ("[timer]", 0, ""), each=9).wait(7, 7, RECV, 350, CLIENT, each=9)
    host.wait(20, 20, RECV, 980, ("p7-7", 7, "t7"), each=9)
    facts = facts_of(host.made())
    row = next(each for each in process_verdicts(facts, first=judge(facts).first) if each.pids == (7,))
    assert (row.kind, row.time, row.ender) == ("sleep", 600 * MS, None)


def test_who_keeps_a_polling_one_waiting() -> None:
    """The rule of the first sentence has details that are not those of this row."""
    profile = yielding(80, 0)
    main = Tracee(profile, 2, "app", 2, "app").run(7 * SECOND)
    main.wait(SLEEP, "interruptible", 3 * SECOND, 30)
    helper = Tracee(profile, 2, "app", 12, "helper").run(SECOND)
    helper.wait(FSYNC, "uninterruptible", 8 * SECOND, 100).wait(POOL, "interruptible", SECOND, 100)
    facts = facts_of(profile)
    first = judge(facts).first
    assert first
    assert first.rule == "polling"
    (row,) = [each for each in process_verdicts(facts, first=first) if 2 in each.pids]
    assert (row.kind, row.pids) == ("cpu", (2,))
    assert row.told.startswith("70.0 % of the time of the main thread of app is on a core")
