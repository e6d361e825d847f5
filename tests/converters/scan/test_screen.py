from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios

import pytest
import tcp_profiles
from host_profiles import busy_host
from scans import three_troubles
from slice_profiles import slices, steady, two_phases
from stallscope.converters.facts import thresholds
from stallscope.converters.model import Profile, ThreadTimes
from stallscope.converters.scan import screen
from stallscope.converters.scan.report import report_of
from summary_profiles import READ, SECOND, Tracee, empty
from verdict_profiles import LOCK
from wait_graphs import chained, profile_of, with_extremes


def text_of(profile: Profile) -> str:
    file = io.StringIO()
    screen.show(report_of(profile), file)
    return file.getvalue()


def on_terminal(profile: Profile, columns: int, lines: int) -> list[str]:
    """The lines that a terminal of this size gets."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    with os.fdopen(slave, "w") as file, os.fdopen(master, "rb") as got:
        screen.show(report_of(profile), file)
        return got.read().decode().splitlines()


def many(number: int) -> Profile:
    """Processes that wait in different places."""
    profile = empty()
    for pid in range(1, number + 1):
        name = f"app{chr(96 + pid)}"
        Tracee(profile, pid, name, pid, name).run(SECOND).wait(READ, "interruptible", 9 * SECOND, 900)
    return profile


def test_processes_with_their_verdicts() -> None:
    text = text_of(three_troubles())
    assert "Scanned 4 processes with 4 threads for 10.0 s" in text
    rows = [line.split()[:2] for line in text.splitlines() if line.startswith(("io ", "peer ", "lock "))]
    assert sorted(kind for kind, _ in rows) == ["io", "lock", "peer"]
    assert "2 × queue (pid 3, 4)" in text
    assert "main → save → fsync │ folio_wait_bit" in text


def test_the_network_below_a_row() -> None:
    profile = tcp_profiles.both(0.9, 0.9)
    profile.objects[0].retransmissions = 9
    assert "9 segments of that connection were sent again" in text_of(profile).partition("Verdict")[2]
    profile.objects[0].retransmissions = 1
    assert "sent again" not in text_of(profile)


def test_idle_processes_are_one_line() -> None:
    profile = three_troubles()
    for pid in range(20, 20 + thresholds.IDLE_NAMED + 2):
        name = f"cron{chr(77 + pid)}"
        Tracee(profile, pid, name, pid, name).wait(READ, "interruptible", 10 * SECOND, 1)
    (line,) = [line for line in text_of(profile).splitlines() if line.startswith("Idle: ")]
    assert line.count("cron") == thresholds.IDLE_NAMED
    assert line.endswith("and 2 others")


@pytest.mark.parametrize("number", [2, thresholds.SCAN_ROWS, 25])
@pytest.mark.parametrize(("columns", "lines"), [(150, 60), (100, 40), (80, 24)])
def test_it_fits_a_terminal(number: int, columns: int, lines: int) -> None:
    shown = on_terminal(many(number), columns, lines)
    assert len(shown) < min(lines, screen.LINES)
    assert any(line.startswith("peer ") or "peer" in line.split()[:1] for line in shown)


def test_rows_that_have_no_room_are_counted() -> None:
    text = text_of(many(thresholds.SCAN_ROWS + 3))
    assert "and 3 processes more (--json has them)" in text
    assert "processes more" not in text_of(many(thresholds.SCAN_ROWS))


def test_hostile_names_are_printable() -> None:
    profile = empty()
    Tracee(profile, 1, "a\x1b[31m\nb", 1, "t").run(SECOND).wait(READ, "interruptible", 9 * SECOND, 900)
    text = text_of(profile)
    assert "\x1b" not in text
    assert "a\\x1b[31m\\x0ab" in text


def test_a_trace_without_threads() -> None:
    assert "No thread was seen." in text_of(empty())


def waiting_for_two(short: int) -> Profile:
    """A process that waits for one that is not traced, and one that waits for that and, for ``short`` ns, for the first
    one."""
    waits = (
        chained(7, 7, SECOND // 2, ("disk-9", 9, "t9")),
        chained(8, 8, SECOND * 3 // 10, ("disk-9", 9, "t9")),
        chained(8, 8, short, ("app-7", 7, "t7")),
    )
    profile = with_extremes(profile_of(*waits))
    profile.threads = [
        ThreadTimes(pid, f"p{pid}", pid, "t", SECOND, SECOND // 3, 0, {"interruptible": waited})
        for pid, waited in ((7, SECOND // 2), (8, SECOND * 3 // 10 + short))
    ]
    return profile


def test_who_waits_for_whom_is_told_if_a_row_does_not_tell_it() -> None:
    """A row tells one process that ends waits: of the second one, not that it waits for the first one, too."""
    lines = text_of(waiting_for_two(SECOND // 5)).splitlines()
    head = next(i for i, line in enumerate(lines) if "Who waits → for whom" in line)
    assert [line.split() for line in lines[head + 1 : head + 4]] == [
        ["500", "ms", "50.0", "%", "p7", "(pid", "7)", "→", "disk", "(pid", "9)"],
        ["300", "ms", "30.0", "%", "p8", "(pid", "8)", "→", "disk", "(pid", "9)"],
        ["200", "ms", "20.0", "%", "p8", "(pid", "8)", "→", "p7", "(pid", "7)"],
    ]
    assert "Who waits →" not in text_of(waiting_for_two(SECOND // 20)), "it waits for it for a short time"


def test_locks_are_told_after_other_troubles() -> None:
    profile = busy_host()
    lines = text_of(profile).splitlines()
    (first,) = (i for i, line in enumerate(lines) if line.startswith("• Lock on /srv/db.lock (flock): 2 processes"))
    assert lines[first + 1].startswith("• Mutex table+0x40 of train (7): 2 threads waited 3.00 s, 3.0 at a time; with")
    assert lines[first - 1].startswith("• ")
    assert len(on_terminal(profile, 100, 60)) < 40


def test_a_strip_is_there_if_something_changes() -> None:
    text = text_of(two_phases())
    assert "Over time" in text
    (row,) = [line for line in text.splitlines() if line.startswith(("lock ", "io "))]
    assert "IIIILLLLLL" in row
    assert "for the first 4.00 s it is blocked in I/O (load → read), then for 6.00 s it waits for a lock" in text
    assert "Over time, a letter for each 1.00 s: L lock, I io\n" in text


def test_the_strip_of_a_process_that_ended_early_begins_with_the_others() -> None:
    profile = two_phases()
    Tracee(profile, 2, "short", 2, "short").wait(LOCK, "interruptible", 4 * SECOND, 600)
    profile.slices.append(slices({"lock": [1] * 4}, pid=2, tid=2))
    lines = text_of(profile).splitlines()
    (column,) = {line.index("Over time") for line in lines if line.startswith("Verdict")}
    assert [line[column:][:10] for line in lines if line.startswith("lock ")] == ["IIIILLLLLL", "LLLL      "]


def test_a_steady_host_has_no_strips() -> None:
    assert "Over time" not in text_of(steady())
    assert "Over time" not in text_of(three_troubles())


def test_strips_fit_a_terminal() -> None:
    profile = many(25)
    profile.slices = [
        slices({"peer": [0.9] * 5 + [0.1] * 5, "cpu": [0.1] * 5 + [0.9] * 5}, pid=each.pid, tid=each.tid)
        for each in profile.threads
    ]
    for columns, lines in ((150, 60), (100, 40), (80, 24)):
        shown = on_terminal(profile, columns, lines)
        assert len(shown) < min(lines, screen.LINES)
        assert any("Over time" in line for line in shown)


def test_hostile_places_of_phases() -> None:
    profile = two_phases()
    profile.slices[0].spent[0].frames = ("main", "\x1b[2J")
    assert "\x1b[2J" not in text_of(profile)
