"""perf_event_open(2), for real where root is needed."""

from __future__ import annotations

import errno
import io
import os

import pytest
from stallscope.tracers.kernel import perf_events
from stallscope.tracers.kernel.perf_events import Attr, open_event


@pytest.mark.parametrize(
    ("text", "cpus"), [("0\n", [0]), ("0-3\n", [0, 1, 2, 3]), ("0,2-3,64-65\n", [0, 2, 3, 64, 65])]
)
def test_online_cpus(text: str, cpus: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_events, "open", lambda _: io.StringIO(text), raising=False)
    assert perf_events.online_cpus() == cpus


def test_a_clock_is_opened(root: None) -> None:
    fd = open_event(Attr(type=perf_events.TYPE_SOFTWARE, sample_period=1000), perf_events.online_cpus()[0])
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_refusal_has_the_kernels_reason(root: None) -> None:
    with pytest.raises(OSError, match="No such file or directory") as caught:
        open_event(Attr(type=0xFFFF), 0)
    assert caught.value.errno == errno.ENOENT
