"""Names and frames of those who wake threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from stallscope.converters.model import Frame, Stack
from stallscope.converters.model.wakers import SEPARATOR, WAKER
from stallscope.tracers.engines import wakers as module
from stallscope.tracers.engines.rows import Row
from stallscope.tracers.engines.wakers import Wakers, by_rows
from stallscope.tracers.kernel.records import (
    BY_CORE,
    BY_DEVICE,
    BY_NOBODY,
    BY_SOFTIRQ,
    BY_THREAD,
    BY_TIMER,
    BY_UNKNOWN,
    RUNNING,
    Origin,
    Waker,
)

CALL = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64")
IRQ = ("asm_common_interrupt", "common_interrupt")
KERNEL = {
    1: (*CALL, "pipe_write", "try_to_wake_up", "bpf_trace_run1", "bpf_prog_1"),
    2: (*CALL, "vfs_read", *IRQ, "irq_exit_rcu", "handle_softirqs", "net_rx_action", "try_to_wake_up", "bpf_prog_1"),
    3: (*CALL, "sock_sendmsg", "do_softirq", "handle_softirqs", "net_rx_action", "try_to_wake_up", "bpf_prog_1"),
    4: ("ret_from_fork_asm", "run_ksoftirqd", "handle_softirqs", "rcu_core", "try_to_wake_up", "bpf_prog_1"),
    5: (*IRQ, "handle_irq", "try_to_wake_up", "bpf_prog_1"),
}
USER = {10: ("_start", "main", "send")}
PROCESSES = {7: "app", 14: "ksoftirqd/0"}


class Stacks:
    def parts_of(self, row: Row) -> tuple[Stack, Stack]:
        user, kernel = USER.get(row.origin.ustack, ()), KERNEL.get(row.origin.kstack, ())
        return tuple(Frame(name) for name in user), tuple(Frame(name, "kernel") for name in kernel)


class Names:
    def process(self, pid: int) -> str:
        return PROCESSES[pid]

    def thread(self, pid: int, first: int) -> str:
        return f"{PROCESSES[pid]}/{first}"


class Lives:
    def first(self, life: int) -> int:
        return {5: 50}.get(life, -1)

    def numbered(self, origin: Origin) -> Origin:
        return origin


class Capture:
    lives = Lives()


@pytest.fixture
def wakers() -> Wakers:
    return Wakers(Lives(), Stacks(), Names())


def waker(context: int, kstack: int = 0, *, ustack: int = 0, pid: int = 0, number: int = 0) -> Waker:
    return Waker(ustack, kstack, pid and pid + 1, pid, pid and 5, number, context)


def told(wakers: Wakers, *links: Waker) -> list[str]:
    return [frame.name for frame in wakers.of(links)[0]]


APP = waker(BY_THREAD, 1, ustack=10, pid=7)


def test_a_thread(wakers: Wakers) -> None:
    frames, labels = wakers.of((APP,))
    assert frames[0] == SEPARATOR
    assert [frame.name for frame in frames[1:]] == [
        "try_to_wake_up", "pipe_write", *CALL[::-1], "send", "main", "_start", "app-7",
    ]  # fmt: skip
    assert {frame.kind for frame in frames[1:]} == {WAKER}
    assert dict(labels) == {"waker": "app-7", "waker_thread": "app/50", "waker_tid": 8}
    assert list(labels) == sorted(labels)


def test_processes_of_wakers(wakers: Wakers) -> None:
    """Interrupts are of no process, whatever they interrupt."""
    wakers.of((APP, waker(BY_TIMER, 5)))
    assert wakers.processes() == {7: "app"}


def test_the_tracer_is_told_by_its_pid_and_nobody_is_behind_it() -> None:
    wakers = Wakers(Lives(), Stacks(), Names(), {7})
    softirq = waker(BY_SOFTIRQ, 4, pid=14, number=9)
    assert told(wakers, APP, softirq) == ["--", "[tracer]"]
    assert dict(wakers.of((APP, softirq))[1]) == {"waker": "[tracer]"}
    assert told(wakers, softirq, APP)[-2:] == ["--", "[tracer]"]
    assert told(wakers, softirq)[-1] == "ksoftirqd/0-14 RCU"
    assert wakers.processes() == {14: "ksoftirqd/0"}
    interrupting = waker(BY_SOFTIRQ, 2, pid=7, number=3)
    assert told(wakers, interrupting)[-1] == "[softirq NET_RX]", "it had nothing to do with what it interrupted"


def test_a_chain(wakers: Wakers) -> None:
    assert told(wakers, APP, waker(BY_TIMER, 5))[-6:] == ["--", "try_to_wake_up", "handle_irq", *IRQ[::-1], "[timer]"]


def test_the_threads_of_a_chain(wakers: Wakers) -> None:
    first = {"waker": "app-7", "waker_thread": "app/50", "waker_tid": 8}
    softirq = waker(BY_SOFTIRQ, 4, pid=14, number=9)
    assert dict(wakers.of((APP, waker(BY_TIMER)))[1]) == {**first, "chain_tids": "8 0"}
    labels = wakers.of((APP, softirq, waker(BY_TIMER)))[1]
    assert dict(labels) == {**first, "chain_tids": "8 15 0", "chain_thread": "ksoftirqd/0/50"}
    assert list(labels) == sorted(labels)


@pytest.mark.parametrize(
    ("link", "name"),
    [
        (waker(BY_TIMER), "[timer]"),
        (waker(BY_SOFTIRQ, number=1), "[timer]"),
        (waker(BY_SOFTIRQ, number=8), "[timer]"),
        (waker(BY_SOFTIRQ, number=3), "[softirq NET_RX]"),
        (waker(BY_SOFTIRQ, number=77), "[softirq 77]"),
        (waker(BY_CORE), "[another core]"),
        (waker(BY_UNKNOWN), "[unknown waker]"),
        (waker(BY_NOBODY), "[still waiting]"),
        (waker(BY_SOFTIRQ, 4, pid=14, number=9), "ksoftirqd/0-14 RCU"),
    ],
)
def test_names(wakers: Wakers, link: Waker, name: str) -> None:
    assert told(wakers, link)[-1] == name
    assert dict(wakers.of((link,))[1])["waker"] == name


def test_devices(wakers: Wakers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_ACTIONS", tmp_path)
    (tmp_path / "36").mkdir()
    (tmp_path / "36" / "actions").write_text("nvme0q1,nvme1q1\n")
    assert told(wakers, waker(BY_DEVICE, number=36))[-1] == "[interrupt nvme0q1,nvme1q1]"
    assert told(wakers, waker(BY_DEVICE, number=37))[-1] == "[interrupt 37]"


def test_what_an_interrupt_interrupts_is_not_told(wakers: Wakers) -> None:
    """The waker is only the interrupt where the probe could not find out: it did not know where interrupts enter the
    kernel."""
    link = waker(BY_SOFTIRQ, 2, ustack=10, pid=7, number=3)
    assert told(wakers, link, APP) == [
        "--", "try_to_wake_up", "net_rx_action", "handle_softirqs", "irq_exit_rcu", *IRQ[::-1], "[softirq NET_RX]",
    ]  # fmt: skip
    assert dict(wakers.of((link, APP))[1]) == {"waker": "[softirq NET_RX]"}


def test_a_softirq_by_a_call_of_the_thread_is_its_own(wakers: Wakers) -> None:
    names = told(wakers, waker(BY_SOFTIRQ, 3, ustack=10, pid=7, number=3))
    assert names[-1] == "app-7"
    assert names[-4:-1] == ["send", "main", "_start"]


def test_rows_for_the_stacks_of_wakers() -> None:
    rows = [Row(Origin(1, 1, 0, 7, 7, 0, 1), "", (), wakers=(APP, waker(BY_TIMER)))] * 2
    assert [row.origin for row in by_rows(rows, cast(Any, Lives()))] == [Origin(10, 1, 0, 8, 7, 5, RUNNING)]
