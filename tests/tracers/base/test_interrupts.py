from __future__ import annotations

import os
import select
import signal
import time

import pytest
from stallscope.tracers.base.interrupts import Interrupts, end_was_requested, ended_by_user

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def handlers() -> object:
    """Handlers of ours for what `Interrupts` takes over; put back afterwards."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    ours: dict[int, object] = {number: lambda *_: None for number in SIGNALS}
    for number, handler in ours.items():
        signal.signal(number, handler)  # type: ignore[arg-type]
    yield ours
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_asks_for_the_end(number: int, handlers: dict[int, object]) -> None:
    with Interrupts() as interrupts:
        assert not interrupts.requested
        os.kill(os.getpid(), number)
        assert select.select([interrupts.wakeup], [], [], 5)[0]
        assert interrupts.requested
    assert {n: signal.getsignal(n) for n in SIGNALS} == handlers
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize(
    ("signals", "by_user"),
    [
        ((signal.SIGINT,), True),
        ((signal.SIGTERM,), False),
        ((signal.SIGTERM, signal.SIGHUP), False),
        ((signal.SIGINT, signal.SIGTERM), False),
        ((), False),
    ],
)
def test_who_has_ended_the_trace(handlers: dict[int, object], signals: tuple[int, ...], by_user: bool) -> None:
    with Interrupts():
        for number in signals:
            os.kill(os.getpid(), number)
    assert ended_by_user() is by_user
    assert end_was_requested() is bool(signals)
    with Interrupts():
        assert not ended_by_user()
        assert not end_was_requested()


def test_second_interrupt_is_meant(handlers: dict[int, object]) -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    assert {n: signal.getsignal(n) for n in SIGNALS} == handlers


def test_second_request_to_end_is_patient(handlers: dict[int, object]) -> None:
    with Interrupts() as interrupts:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
            os.kill(os.getpid(), number)
        assert interrupts.requested


def test_nohup_stays_in_force(handlers: dict[int, object]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(0.01)
        assert not interrupts.requested
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_descriptors_are_closed(handlers: dict[int, object]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with Interrupts():
        pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_ctrl_c_can_be_taken_for_something_else(handlers: dict[int, object]) -> None:
    with Interrupts() as interrupts:
        assert not interrupts.take()
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupts.requested
            assert interrupts.take()
            assert not interrupts.requested
            assert not interrupts.take()
            assert not select.select([interrupts.wakeup], [], [], 0)[0]


@pytest.mark.parametrize("order", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGTERM), (signal.SIGHUP,)])
def test_other_signals_are_meant(order: tuple[int, ...], handlers: dict[int, object]) -> None:
    with Interrupts() as interrupts:
        for number in order:
            os.kill(os.getpid(), number)
        assert not interrupts.take()
        assert interrupts.requested
