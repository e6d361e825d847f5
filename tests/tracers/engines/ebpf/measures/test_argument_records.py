"""The table of calls, of records as the probes write them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from stallscope.converters.collectives.records import OPEN
from stallscope.tracers.engines.ebpf.measures.argument_records import RECORD, table
from stallscope.tracers.engines.ebpf.measures.open_calls import Open
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.kernel.bpfobject import Object


def records(*calls: tuple[int, int, int]) -> NDArray[np.void]:
    """Begin, end and function of each, in the order in which they ended."""
    made = np.zeros(len(calls), RECORD)
    for row, (began, ended, function) in zip(made, calls, strict=True):
        row["began"], row["ended"], row["function"] = began, ended, function
        row["pid"], row["tid"], row["life"], row["arguments"] = 7, 8, 9, range(12)
        row["made"], row["result"], row["ustack"] = 0x5000, -1, 11
    return made


def test_calls_are_in_the_order_in_which_they_began() -> None:
    found = table([records((120, 150, 3), (110, 160, 1)), records((200, 210, 3))], [], "f{}".format, 100, 2)
    assert found.calls["began"].tolist() == [10, 20, 100]
    assert found.calls["ended"].tolist() == [60, 50, 110]
    assert [found.names[number] for number in found.calls["function"]] == ["f1", "f3", "f3"]
    assert found.lost == 2
    call = found.calls[0]
    assert call["arguments"].tolist() == list(range(12))
    assert (call["pid"], call["tid"], call["life"], call["made"], call["result"]) == (7, 8, 9, 0x5000, -1)


def test_a_call_that_goes_on_has_its_arguments() -> None:
    call = Open(8, 0, 130, 11, 5, 6, 0, 0, 3, 9)
    found = table([records((120, 150, 3))], [(call, (*range(20, 32), 7, 9, 3, 0))], "f{}".format, 100, 0)
    row = found.calls[1]
    assert (row["began"], row["ended"], row["pid"], row["tid"], row["life"]) == (30, OPEN, 7, 8, 9)
    assert row["arguments"].tolist() == list(range(20, 32))
    assert (row["blocked"], row["runnable"], found.names[row["function"]]) == (5, 6, "f3")


def test_calls_that_another_one_makes_are_left_out() -> None:
    """The library calls its own function."""
    made = records((120, 150, 3), (110, 160, 1))
    made["level"] = 1, 0
    call = Open(8, 1, 130, 11, 5, 6, 0, 0, 3, 9)
    found = table([made], [(call, (*range(20, 32), 7, 9, 3, 1))], "f{}".format, 100, 0)
    assert [found.names[number] for number in found.calls["function"]] == ["f1"]


def test_no_calls() -> None:
    assert len(table([], [], str, 100, 0).calls) == 0


def test_layout_is_that_of_the_probes() -> None:
    opened = Object(object_path())
    try:
        assert opened.find_map("call_arguments").max_entries == 4096
        assert opened.find_map("open_arguments").value_size == 8 + 12 * 8 + 4 * 4
    finally:
        opened.close()
    assert RECORD.itemsize % 8 == 0
