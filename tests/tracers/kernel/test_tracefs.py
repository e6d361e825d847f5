"""tracefs, the host's and our own. Traces in a mount namespace without it: tests/live/test_without_tracefs.py."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.kernel import tracefs


@pytest.fixture(autouse=True)
def unmounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is at the places where hosts have it; what a test has made is closed."""
    monkeypatch.setattr(tracefs, "PLACES", (tmp_path / "one", tmp_path / "two"))
    monkeypatch.setattr(tracefs, "_own", None)
    yield
    if tracefs.own_mount() is not None:
        os.close(tracefs.own_mount() or 0)


def refusing(number: int) -> Callable[[], NoReturn]:
    def refuse() -> NoReturn:
        raise OSError(number, os.strerror(number))

    return refuse


def test_the_hosts(tmp_path: Path) -> None:
    event = tmp_path / "two/events/sched/sched_switch"
    event.mkdir(parents=True)
    (event / "id").write_text("366\n")
    assert tracefs.folder() == tmp_path / "two"
    assert tracefs.number_of("sched:sched_switch") == 366
    assert tracefs.own_mount() is None


@pytest.mark.parametrize("way", ["detached", "from a child"])
def test_our_own(way: str, require: Callable[[bool, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The mount is read-only, and no list of mounts has it."""
    require(os.geteuid() == 0, "mounting needs root")
    mounts, found = Path("/proc/self/mountinfo").read_bytes(), set(os.listdir("/proc/self/fd"))
    if way != "detached":
        monkeypatch.setattr(tracefs, "_detached", refusing(errno.ENOSYS))
    folder = tracefs.folder()
    assert tracefs.folder() == folder == Path(f"/proc/self/fd/{tracefs.own_mount()}"), "made once"
    assert tracefs.number_of("sched:sched_switch") > 0
    assert "sched:sched_switch" in tracefs.read("available_events").split()
    with pytest.raises(OSError, match="Read-only"):
        (folder / "tracing_on").write_text("1")
    assert Path("/proc/self/mountinfo").read_bytes() == mounts
    assert len(set(os.listdir("/proc/self/fd")) - found) == 1
    assert not os.get_inheritable(tracefs.own_mount() or 0)


@pytest.mark.parametrize(
    ("number", "cause", "remedy"),
    [(errno.EPERM, "cannot mount it", "mount -t tracefs"), (errno.ENODEV, "kernel has no tracefs", "CONFIG_FTRACE")],
)
def test_none(number: int, cause: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracefs, "_detached", refusing(number))
    monkeypatch.setattr(tracefs, "_from_a_child", refusing(number))
    with pytest.raises(StallscopeError, match=cause) as caught:
        tracefs.folder()
    assert remedy in caught.value.remedy


def test_what_others_may_not_read_is_not_mounted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "stat", lambda *_: refusing(errno.EACCES)())
    monkeypatch.setattr(tracefs, "_detached", refusing(errno.EBADF))
    with pytest.raises(StallscopeError, match="may not read tracefs") as caught:
        tracefs.folder()
    assert "CAP_DAC_READ_SEARCH" in caught.value.remedy


def test_a_child_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracefs, "_mount_privately", refusing(errno.EPERM))
    with pytest.raises(OSError, match="not permitted"):
        tracefs._from_a_child()
