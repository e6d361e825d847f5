"""Calls kept with their arguments around their ring. With real calls: tests/live/test_collectives.py."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
from stallscope.tracers.engines.ebpf.measures.argument_records import RECORD
from stallscope.tracers.engines.ebpf.measures.open_calls import Open
from stallscope.tracers.engines.ebpf.measures.recorded_arguments import RecordedArguments
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.measures.argument_options import ArgumentOptions


def test_without_options_nothing_is_recorded() -> None:
    recorded = RecordedArguments(None, str)
    recorded.consume()
    assert recorded.knobs() == {}
    assert recorded.sizes() == {}
    assert recorded.finish((), 0) is None
    assert list(recorded.remarks()) == []
    recorded.close()


def test_options_are_those_of_the_probes() -> None:
    recorded = RecordedArguments(ArgumentOptions(buffer_bytes=1 << 12), str)
    assert recorded.knobs() == {"record_call_arguments": 1}
    assert recorded.sizes() == {"call_arguments": 1 << 12, "open_arguments": 1 << 14}
    found = recorded.finish((), 0)
    assert found and len(found.calls) == 0, "nothing was read"


def test_functions_whose_arguments_are_kept() -> None:
    recorded = RecordedArguments(ArgumentOptions(), str)
    assert recorded.keeps("ncclAllReduce")
    assert not recorded.keeps("cudaMalloc")
    assert not RecordedArguments(None, str).keeps("ncclAllReduce")


def test_what_comes_after_probes_were_removed_is_left_out() -> None:
    """Calls are missing then, and the others cannot be joined."""
    recorded = RecordedArguments(ArgumentOptions(), str)
    made = np.zeros(3, RECORD)
    made["began"], made["ended"] = (110, 190, 200), (120, 230, 210)
    recorded._blocks.append(made)
    found = recorded.finish((), 100, 200)
    assert found and (found.calls["began"].tolist(), found.until) == ([10, 90], 100)
    found = recorded.finish((), 100)
    assert found and (len(found.calls), found.until) == (3, None)
    found = recorded.finish((), 100, watched=frozenset((7,)))
    assert found and found.watched == {7}


class Maps:
    """Kernel's side of two calls that go on, of which the second one's arguments are not written yet."""

    def find_map(self, _name: str) -> Maps:
        return self

    def lookup_percpu_u64(self, _key: int) -> int:
        return 0

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        yield struct.pack("<II", 0, 8), struct.pack("<Q12Q4I", 130, *range(12), 7, 1, 3, 0)
        yield struct.pack("<II", 0, 9), struct.pack("<Q12Q4I", 0, *[0] * 12, 0, 0, 0, 0)


def test_an_entry_that_is_not_written_yet_is_of_no_call() -> None:
    recorded = RecordedArguments(ArgumentOptions(), "f{}".format)
    recorded.read(cast(Object, Maps()))
    found = recorded.finish([Open(tid, 0, 130, 11, 5, 6, 0, 0, 3) for tid in (8, 9)], 100)
    assert found and (found.calls["tid"].tolist(), found.calls["pid"].tolist()) == ([8], [7])


def test_the_begin_of_an_entry_is_written_last() -> None:
    # The entry is known by it to be of a call.
    text = (Path(__file__).parents[5] / "bpf" / "include" / "call_arguments.bpf.h").read_text()
    body = text.partition("void keep_arguments(")[2].partition("\n}\n")[0]
    assert re.findall(r"barrier\(\)|kept->(\w+)\b[^;\n]*= ", body)[-2:] == ["", "began"]
    assert body.count("kept->began") == 1
