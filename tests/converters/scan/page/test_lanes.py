from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
import pytest
from scans import HOSTILE, scanned_host
from scheduling_traces import SLEEPING, rows, run
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, states
from stallscope.converters.model import scheduling as events
from stallscope.converters.model.phases import STATES, phases
from stallscope.converters.model.scheduling import NO_STACK, Scheduling
from stallscope.converters.scan.page import lanes
from stallscope.converters.scan.page.groups import groups_of
from stallscope.converters.scan.report import report_of

GROUPS = groups_of(report_of(scanned_host(events=False)))


class Block:
    """Data that the page's script reads."""

    def __init__(self, scheduling: Scheduling) -> None:
        raw = zlib.decompress(lanes.pack(scheduling, GROUPS))
        length = int.from_bytes(raw[:4], "little")
        assert (4 + length) % 8 == 0
        self.about = json.loads(raw[4 : 4 + length])
        at = 4 + length
        self.columns: dict[str, Any] = {}
        for name, count, kind in self.about["columns"]:
            width = 1 if kind == "u8" else 4
            part = np.frombuffer(raw, np.uint8, width * count, at)
            at += width * count
            self.columns[name] = part if width == 1 else np.ascontiguousarray(part.reshape(4, -1).T).view("<u4")[:, 0]
        assert at == len(raw)

    def lanes(self) -> list[list[tuple[int, int, str, int]]]:
        """Begin, end, kind and stack of each phase of each thread."""
        found, first = [], 0
        for count, end in zip(self.columns["counts"], self.columns["ends"], strict=True):
            part = slice(first, first + count)
            begins = np.cumsum(self.columns["since"][part], dtype=np.int64)
            ends = [*begins[1:], end]
            kinds = [lanes.KINDS[kind] for kind in self.columns["kinds"][part]]
            found.append(list(zip(map(int, begins), map(int, ends), kinds, self.columns["stacks"][part], strict=True)))
            first += count
        return found

    def frames(self, stack: int) -> list[str]:
        begin, end = self.columns["stackBegins"][stack - 1], self.columns["stackBegins"][stack]
        return [self.about["frames"][i] for i in self.columns["stackFrames"][begin:end]]


def test_phases_are_those_of_the_events() -> None:
    scheduling = run(3_000).scheduling()
    block = Block(scheduling)
    unit, found = block.about["unit"], phases(scheduling)
    assert unit == 1
    assert sum(map(len, block.lanes())) == len(found)
    for thread, lane in zip(np.unique(found["thread"]), block.lanes(), strict=True):
        expected = found[found["thread"] == thread]
        assert [(begin, end) for begin, end, *_ in lane] == list(
            zip(expected["begin"].tolist(), expected["end"].tolist(), strict=True)
        )
        for (_, _, kind, stack), phase in zip(lane, expected, strict=True):
            state = STATES[phase["state"]]
            assert (kind == "running") == (state == states.RUNNING)
            assert (kind == "runnable") == (state in states.RUNNABLE_STATES)
            assert (stack == 0) == (phase["stack"] == NO_STACK)
            if stack:
                names = [frame.name for frame in scheduling.stacks[phase["stack"]]]
                assert [name.partition(" │ ")[0] for name in block.frames(stack)] == names


def test_threads_have_names_and_groups() -> None:
    profile = scanned_host()
    assert profile.scheduling
    block = Block(profile.scheduling)
    for pid, tid, name, process, group in block.about["threads"]:
        assert pid in (100, 101, 102)
        assert name.startswith(("worker-", "new-"))
        assert process == GROUPS.names.get(pid, f"python3 rank{pid - 100}")
        assert group == GROUPS.of(pid)
        assert tid >= 100


def test_waits_have_their_kind() -> None:
    scheduling = run(3_000).scheduling()
    kinds = {kind for lane in Block(scheduling).lanes() for _, _, kind, _ in lane}
    assert {"running", "runnable", "driver", "peer"} <= kinds
    assert kinds <= set(lanes.KINDS)


def test_running_and_runnable_threads_over_the_whole_time() -> None:
    scheduling = run(3_000).scheduling()
    block, found = Block(scheduling), phases(scheduling)
    running, runnable = block.columns["all"].reshape(2, -1) / 1000
    for average, wanted in ((running, (states.RUNNING,)), (runnable, states.RUNNABLE_STATES)):
        here = found[np.isin(found["state"], [STATES.index(state) for state in wanted])]
        expected = (here["end"] - here["begin"]).sum() / scheduling.end
        assert average.mean() == pytest.approx(expected, rel=0.01)
    assert running.max() <= 4.01


def test_long_recordings_have_larger_units() -> None:
    threads = rows(events.THREAD, tid=[7], tgid=[7])
    switches = rows(events.SWITCH, time=[10**9, 2 * 10**10], next_tid=[7, 0], prev_tid=[0, 7], prev_state=[0, SLEEPING])
    scheduling = Scheduling(3 * 10**10, threads=threads, switches=switches, names=["a"])
    block = Block(scheduling)
    unit = block.about["unit"]
    assert 3 * 10**10 // unit < 1 << 32
    (lane,) = block.lanes()
    running = next((begin * unit, end * unit) for begin, end, kind, _ in lane if kind == "running")
    assert running == pytest.approx((10**9, 2 * 10**10), abs=2 * unit)


def test_samples_are_of_their_thread() -> None:
    scheduling = run(500).scheduling()
    tid = int(scheduling.threads["tid"][0])
    scheduling.samples = rows(events.SAMPLE, time=[5_000, 9_000], tid=[tid, 999_999], stack=[0, 0])
    block = Block(scheduling)
    assert block.columns["sampleTimes"].tolist() == [5_000]
    assert block.about["threads"][block.columns["sampleThreads"][0]][1] == tid
    assert len(block.frames(block.columns["sampleStacks"][0])) == len(scheduling.stacks[0])


def test_of_too_many_phases_the_newest_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST", 100)
    scheduling = run(3_000).scheduling()
    block = Block(scheduling)
    assert block.about["dropped"] == len(phases(scheduling)) - 100
    found = [phase for lane in block.lanes() for phase in lane]
    assert len(found) <= 100
    assert block.about["begin"] > 0
    assert max(end for _, end, *_ in found) == scheduling.end - block.about["begin"]


def test_hostile_names_are_printable() -> None:
    profile = scanned_host(name=HOSTILE)
    assert profile.scheduling
    profile.scheduling.stacks = [(*stack, Frame(HOSTILE)) for stack in profile.scheduling.stacks]
    about = Block(profile.scheduling).about
    texts = [*about["frames"], *(text for thread in about["threads"] for text in thread[2:4])]
    assert [text for text in texts if text != printable(text)] == []
    assert printable(HOSTILE) in about["frames"]


def test_nothing_recorded() -> None:
    block = Block(Scheduling(1_000))
    assert block.about["threads"] == block.lanes() == []
