from __future__ import annotations

import json
from dataclasses import replace

import pytest
from slice_profiles import slices, steady, two_phases
from stallscope.converters.facts.waits import wait_of
from stallscope.converters.model import Profile
from stallscope.converters.model.slices import ThreadSlices
from stallscope.converters.model.wait_objects import LABEL, TCP, WaitObject
from stallscope.converters.rules.finding import CPU
from stallscope.converters.rules.place_kinds import kind_of_wait
from stallscope.converters.rules.verdict import CORES, KINDS
from stallscope.converters.scan import over_time
from stallscope.converters.scan.process_verdicts import ProcessVerdict, process_verdicts
from stallscope.converters.summary.judging import read
from summary_profiles import MS, READ, SECOND, SLEEP, Tracee, empty


def rows(profile: Profile) -> list[ProcessVerdict]:
    return process_verdicts(read(profile).facts)


def test_every_kind_of_verdict_has_a_letter() -> None:
    kinds = {kind_of_wait(wait_of(stack, state), state) for stack, state in ((SLEEP, "interruptible"), ((), "idle"))}
    of_waits = set(KINDS) - {
        "deadlock",
        "quota",
        "pool-anew",
        "processes-anew",
        "herd",
        "still",
        "slow-step",
        "late-rank",
        "late-messages",
    }
    assert of_waits <= set(over_time.LETTERS)
    assert kinds - {"work"} <= set(over_time.LETTERS)
    assert len(set(over_time.LETTERS.values())) == len(over_time.LETTERS)
    assert {CPU, CORES} <= set(over_time.LETTERS)


def test_a_process_that_changes() -> None:
    (row,) = rows(two_phases())
    assert row.over
    assert row.over.strip == "IIIILLLLLL"
    assert row.over.changes
    assert row.over.told == (
        "for the first 4.00 s it is blocked in I/O (load → read), then for 6.00 s it waits for a lock "
        "(take_lock → pthread_mutex_lock)"
    )


def test_what_it_is_on_is_told() -> None:
    profile = two_phases()
    profile.slices[0].spent[0].object = 9
    profile.objects = [WaitObject(9, "file", "/data/x")]
    (row,) = rows(profile)
    assert row.over
    assert "(load → read of /data/x), then" in row.over.told


def test_processes_that_do_not_change() -> None:
    for row in rows(steady()):
        assert row.over
        assert row.over.strip == {"app": "I" * 10, "other": "L" * 10}[row.name]
        assert (row.over.changes, row.over.told) == (False, "")


def test_a_process_that_begins_later() -> None:
    profile = two_phases()
    profile.slices = [replace(profile.slices[0], first=3)]
    (row,) = rows(profile)
    assert row.over
    assert row.over.strip == "---IIIILLLLLL"
    assert row.over.told.startswith("for the first 4.00 s ")


def test_only_the_threads_of_the_verdict_count() -> None:
    profile = two_phases()
    Tracee(profile, 1, "app", 2, "pool").wait(SLEEP, "interruptible", 10 * SECOND, 1)
    profile.slices.append(slices({"sleep": [1] * 10}, tid=2))
    (row,) = rows(profile)
    assert row.over
    assert row.over.strip == "IIIILLLLLL"


def test_threads_without_slices_of_their_own() -> None:
    profile = two_phases()
    profile.slices = [replace(profile.slices[0], tid=0)]
    (row,) = rows(profile)
    assert row.over
    assert row.over.strip == "IIIILLLLLL"


def test_what_polls_is_told_as_polling() -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(SLEEP, "interruptible", 9 * SECOND, 900).run(SECOND)
    profile.slices = [slices({"sleep": [0.9] * 10, "cpu": [0.1] * 10})]
    (row,) = rows(profile)
    assert row.kind == "polling"
    assert row.over
    assert row.over.strip == "O" * 10


@pytest.mark.parametrize(
    ("remote", "kind", "letter"), [("10.0.0.5:5432", "network", "N"), ("127.0.0.1:1", "peer", "P")]
)
def test_who_waits_for_another_host(remote: str, kind: str, letter: str) -> None:
    profile = empty()
    Tracee(profile, 1, "app", 1, "app").wait(READ, "interruptible", 9 * SECOND, 90).run(SECOND)
    profile.samples = [each._replace(labels=(*each.labels, (LABEL, 3))) for each in profile.samples]
    profile.objects = [WaitObject(3, TCP, remote=remote)]
    profile.slices = [slices({"peer": [0.9] * 10, "cpu": [0.1] * 10})]
    (row,) = rows(profile)
    assert row.kind == kind
    assert row.over
    assert row.over.strip == letter * 10


def test_processes_that_do_the_same_are_added_up() -> None:
    profile = two_phases()
    other = two_phases()
    for each in other.threads:
        each.pid = each.tid = 2
    profile.threads += other.threads
    changed = {"pid": 2, "tid": 2}
    profile.samples += [
        sample._replace(labels=tuple((key, changed.get(key, value)) for key, value in sample.labels))
        for sample in other.samples
    ]
    profile.slices.append(slices({"io": [1] * 4 + [0] * 6, "lock": [0] * 4 + [1] * 6}, pid=2, tid=2))
    (row,) = rows(profile)
    assert (row.pids, row.over and row.over.series.whole(0)) == ((1, 2), 2 * SECOND)


def test_without_slices() -> None:
    profile = two_phases()
    profile.slices = []
    assert rows(profile)[0].over is None
    assert over_time.to_json(None) is None


def test_json() -> None:
    made = json.loads(json.dumps(over_time.to_json(rows(two_phases())[0].over)))
    assert made["length_ns"] == SECOND
    assert made["kinds"] == ["io"] * 4 + ["lock"] * 6
    assert made["times_ns"] == {"io": [SECOND] * 4 + [0] * 6, "lock": [0] * 4 + [SECOND] * 6}
    assert [each["kind"] for each in made["phases"]] == ["io", "lock"]
    assert made["phases"][1]["begin_ns"] == 4_000 * MS


def test_legend() -> None:
    found = [row.over for row in rows(two_phases()) if row.over]
    assert over_time.legend(found) == "L lock, I io"


def test_hostile_numbers_of_slices() -> None:
    profile = two_phases()
    profile.slices.append(ThreadSlices("\x1b[2J", "", 77, 0, 1, 900))
    assert rows(profile)
