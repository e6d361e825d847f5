from __future__ import annotations

import pytest
from stallscope.converters.facts.contention import contention_of
from stallscope.converters.model import Frame, Stack
from stallscope.converters.model.origins import ProcessOrigin
from stallscope.converters.model.processes import LATENCY_BUCKETS, CpuLimit
from stallscope.tracers.base.conditions import Condition
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.named_rows import Account, NamedRows, Place, refuse, shared_out
from stallscope.tracers.engines.protocol import EngineUnavailable, Request
from stallscope.tracers.measures.offcpu import OffCpu
from stallscope.tracers.measures.oncpu import OnCpu

F: Stack = (Frame("f"),)


def test_profile() -> None:
    account = Account(1, 2, 100, 400, on_cpu=100, runnable=50, switches=3, exited=True)
    account.blocked["interruptible"] = 150
    rows = {
        "offcpu": {Place(1, 2, "interruptible", F, True): [150, 2, 50, 100]},
        "oncpu": {Place(1, 2, "running", F): (100, 7)},
    }
    taken = NamedRows(5, 300, rows, [account], {2: "t"}, {1: "p"}, {"events": 4}, ["x"])
    profile = taken.profile((OffCpu(time="wall"), OnCpu(time="wall")), "Wall-clock time")
    assert [column.name for column in profile.value_types] == ["wall", "count", "min", "max", "samples"]
    wait, running = profile.samples
    assert wait.values == (150, 2, 50, 100, 0)
    assert dict(wait.labels) == {
        "open": "yes", "pid": 1, "process": "p", "state": "interruptible", "thread": "t", "tid": 2,
    }  # fmt: skip
    assert list(wait.labels) == sorted(wait.labels)
    assert running.values == (100, 0, 0, 0, 7)
    assert (profile.title, profile.start_ns, profile.duration_ns) == ("Wall-clock time of p", 5, 300)
    (times,) = profile.threads
    assert (times.wall, times.on_cpu, times.runnable, times.blocked) == (300, 100, 50, {"interruptible": 150})
    assert (times.thread, times.switches, times.exited) == ("t", 3, True)
    assert (profile.lost, profile.comments) == ({"events": 4}, ["x"])


def test_equal_labels_are_one_object() -> None:
    """Readers of labels look them up by identity: those of one thread's rows, of which there may be very many."""
    places = [Place(1, 2, "interruptible", (Frame(name),)) for name in "fg"]
    rows = {"offcpu": dict.fromkeys([*places, Place(1, 3, "interruptible", F)], (1, 1, 1, 1))}
    one, two, other = NamedRows(0, 1, rows, [], {}, {1: "p"}).profile((OffCpu(),), "Time").samples
    assert one.labels is two.labels
    assert dict(other.labels)["tid"] == 3


def test_processes() -> None:
    limit = CpuLimit("/job", 20_000, 100_000, 10, 9, 500)
    condition = Condition(
        "0-1", (limit,), {"OMP_NUM_THREADS": "4"}, "train.py", "p", {"rank": "3"}, ProcessOrigin(1, "")
    )
    accounts = [Account(pid, tid, 0, 100) for pid, tid in ((1, 1), (1, 2), (1, 3), (2, 2))]
    accounts[1].created = True
    for account, ns in ((accounts[0], 2_000), (accounts[2], 1_000), (accounts[2], 2_047)):
        account.waited_for_core(ns)
    rows = {"offcpu": {Place(1, 2, "interruptible", F): [50, 1, 50, 50]}}
    taken = NamedRows(0, 100, rows, accounts, {}, {1: "p", 2: "q"}, conditions={1: condition})
    profile = taken.profile((OffCpu(),), "Time")
    one, two = profile.processes
    assert (one.pid, one.process, one.cpus, one.limits, one.script) == (1, "p", "0-1", (limit,), "train.py")
    assert one.environment == {"OMP_NUM_THREADS": "4"}
    assert one.latencies == (1, 2) + (0,) * (LATENCY_BUCKETS - 2)
    assert (two.latencies, two.cpus, two.environment) == ((), "", None), "nothing is known of it"
    assert profile.samples[0].label("rank") == "3"
    assert profile.origins == [ProcessOrigin(1, "p")]
    (found, _) = contention_of(profile)
    assert (found.created, found.allowed, found.limits) == (1, 0.2, (limit,))


def test_an_engine_that_does_not_look_at_processes_tells_nothing_of_them() -> None:
    assert not NamedRows(0, 1, {}, [Account(1, 1, 0, 1)], {}, {}).profile((OffCpu(),), "Time").processes


def test_names_and_titles() -> None:
    def title(*names: str) -> str:
        accounts = [Account(pid, pid, 0, 1) for pid in range(1, len(names) + 1)]
        processes = {pid: name for pid, name in enumerate(names, 1) if name}
        return NamedRows(0, 1, {}, accounts, {}, processes).profile((OffCpu(),), "Time").title

    assert title() == "Time"
    assert title("a", "b", "a") == "Time of 2 × a, b"
    assert title("", "b") == "Time of [unknown], b"
    assert title("a", "b", "c", "d") == "Time of 4 processes"


def test_shares_are_whole_numbers() -> None:
    assert shared_out(10, [1, 1, 1]) == [3, 3, 4]
    assert shared_out(0, [5]) == [0]
    assert shared_out(7, []) == []


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"every": 1.0}, "--every"),
        ({"every": 1.0, "every_option": "--watch"}, "--watch"),
        ({"python_only": True}, "--python-only"),
        ({"container_pids": True}, "--container-pid"),
    ],
)
def test_options_of_other_engines(given: dict[str, object], option: str) -> None:
    refuse("perf", Request(Scope(), (), "Time"))
    with pytest.raises(EngineUnavailable, match=f"the engine perf does not have {option}") as error:
        refuse("perf", Request(Scope(), (), "Time", **given))  # type: ignore[arg-type]
    assert error.value.exit_code == 2, "wrong usage"
