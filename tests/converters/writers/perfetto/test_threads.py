from __future__ import annotations

import io

from perfetto_rules import read
from scheduling_traces import rows
from stallscope.converters.model.scheduling import CREATION, THREAD, Scheduling
from stallscope.converters.writers.perfetto import wire
from stallscope.converters.writers.perfetto.context import CORES, Context, packet
from stallscope.converters.writers.perfetto.threads import process_trees


def trees(scheduling: Scheduling) -> bytes:
    file = io.BytesIO(packet(CORES, wire.text(6, b"")))
    file.seek(0, io.SEEK_END)
    file.writelines(process_trees(Context(scheduling, 0)))
    return file.getvalue()


def test_threads_and_processes_are_named_when_they_are_there() -> None:
    threads = rows(
        THREAD, tid=[8, 7, 9, 20], tgid=[7, 7, 9, 20], begin=[0, 0, 50, 5], name=[1, 0, 2, 3], process=[0, 0, 2, 3]
    )
    created = rows(CREATION, time=[50], tid=[9], tgid=[9], parent=[8])
    names = ["train", "loader", "a child", "before"]
    trace = read(trees(Scheduling(100, begin=10, threads=threads, created=created, names=names)))
    assert trace.threads == [(10, 8, 7, "loader"), (10, 7, 7, "train"), (10, 20, 20, "before"), (51, 9, 9, "a child")]
    assert trace.processes == {7: "train", 20: "before", 9: "a child"}
    processes = [process for packet in trace.packets for process in packet.process_tree.processes]
    assert {process.pid: process.ppid for process in processes} == {7: 0, 20: 0, 9: 7}
    # The viewer would cut one argument at its first space.
    assert [list(process.cmdline) for process in processes if process.pid == 9] == [["a child", ""]]


def test_a_process_is_known_by_any_of_its_threads() -> None:
    threads = rows(THREAD, tid=[8, 9], tgid=[7, 7])
    assert read(trees(Scheduling(100, threads=threads, names=["train"]))).processes == {7: "train"}
