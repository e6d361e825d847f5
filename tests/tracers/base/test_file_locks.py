from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest
from lock_tables import ME, OWNER, SOON, WAITER
from stallscope.converters.model.file_locks import FileLock, LockAsker
from stallscope.tracers.base import file_locks
from stallscope.tracers.base.file_locks import FileLocks
from stallscope.tracers.base.lock_table import Lock, Refused
from stallscope.tracers.base.open_descriptors import mounts_of


def looked(*texts: bytes, table: Path, traced: dict[int, object]) -> list[FileLock]:
    """Locks that are found after these looks."""
    look, began = FileLocks(traced), time.monotonic_ns()
    for text in texts:
        table.write_bytes(text)
        look.finish()
    return look.found(traced, began, time.monotonic_ns())


def test_who_waits_is_counted_by_looks(table: Path) -> None:
    text = OWNER % 1 + 3 * (WAITER % ME)  # three threads
    (found,) = looked(text, text, b"", text, table=table, traced={ME: 0})
    assert (found.pid, found.owner_pid, found.seen, found.looks) == (ME, 1, 3, 4)
    assert found.owner.startswith(Path("/proc/1/comm").read_text().strip())
    assert (found.kind, found.access, found.device, found.inode, found.path) == ("flock", "write", 8 << 20 | 1, 99, "")
    assert 0 < found.first_seen < found.last_seen
    assert not found.owner_ended


def test_how_many_wait_at_a_time_is_counted_by_looks(table: Path) -> None:
    """Numbers of waits at three looks: three, one, and two, of which one is not traced."""
    other = (OWNER % 1).replace(b":99", b":98") + (WAITER % ME).replace(b":99", b":98")
    texts = (OWNER % 1 + number * (WAITER % ME) for number in (3, 1, 1))
    looks = [text + rest for text, rest in zip(texts, (other, b"", WAITER % 2), strict=True)]
    found = looked(*looks, b"", table=table, traced={ME: 0})
    assert {(each.inode, each.busy, each.waiting) for each in found} == {(99, 3, 5), (98, 1, 1)}


def test_who_is_not_traced_is_left_out_but_for_owners(table: Path) -> None:
    text = OWNER % 1 + WAITER % ME + b"2: FLOCK  ADVISORY  WRITE 2 08:01:98 0 EOF\n" + b"2" + (WAITER % 1)[1:]
    found = looked(text, table=table, traced={ME: 0})
    assert {(each.pid, each.owner_pid) for each in found} == {(ME, 1), (1, 2)}
    assert looked(text, table=table, traced={}) == []


def test_an_owner_that_has_ended(table: Path) -> None:
    gone = (1 << 22) - 1
    (found,) = looked(OWNER % gone + WAITER % ME, table=table, traced={ME: 0})
    assert (found.owner, found.owner_pid, found.owner_ended) == ("", gone, True)


def test_looks_go_on_beside_the_trace(table: Path) -> None:
    table.write_bytes(OWNER % 1 + WAITER % ME)
    look, began = FileLocks({ME: 0}), time.monotonic_ns()
    until = time.monotonic() + 60
    while len(look._looks) < 3 and time.monotonic() < until:
        look.poll()
        time.sleep(0.001)
    (found,) = look.found({ME: 0}, began, time.monotonic_ns())
    assert found.seen == found.looks >= 3
    look.next()
    assert look.found({ME: 0}, began, time.monotonic_ns()) == []


def test_without_waits_nothing_is_looked_at(table: Path) -> None:
    table.write_bytes(OWNER % 1 + WAITER % ME)
    look = FileLocks({ME: 0}, looks=False)
    look.poll()
    look.finish()
    assert look.found({ME: 0}, 0, time.monotonic_ns()) == []


def test_no_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(file_locks, "TABLE", str(tmp_path / "none"))
    look = FileLocks({ME: 0})
    look.finish()
    assert look.found({ME: 0}, 0, time.monotonic_ns()) == []


def test_of_a_huge_table_the_beginning_is_read(table: Path) -> None:
    table.write_bytes((OWNER % 1) * (1 << 18))
    assert len(file_locks._table()) == 1 << 20


def test_open_files_that_take_long_are_looked_for_the_next_time(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (mine,) = [each for each in Path("/proc/locks").read_text().split("\n") if f" {ME} " in each]
        number, _, lock = mine.partition(":")
        text = f"{mine}\n{number}: ->{lock}\n".encode()
        monkeypatch.setattr(file_locks, "_SLICE", 0)
        (found,) = looked(text, table=table, traced={ME: 0})
        assert found.path == ""
        monkeypatch.setattr(file_locks, "_SLICE", 60)
        (found,) = looked(text, text, table=table, traced={ME: 0})
        assert found.path == str(tmp_path / "lock")


def test_the_only_one_that_has_the_file_open_waits_for_the_lock_of_an_open_file(table: Path, tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as file:
        mount = next(
            int(line.split()[1])
            for line in Path(f"/proc/self/fdinfo/{file.fileno()}").read_text().split("\n")
            if line.startswith("mnt_id:")
        )
        major, minor = map(int, mounts_of(Path("/proc/self/mountinfo").read_bytes())[mount].device.split(":"))
        where = f"{major:02x}:{minor:02x}:{os.fstat(file.fileno()).st_ino} 0 EOF\n"
        text = f"1: OFDLCK ADVISORY  WRITE -1 {where}1: -> OFDLCK ADVISORY  WRITE -1 {where}".encode()
        (found,) = looked(text, text, table=table, traced={ME: 0, 1 << 30: 0})
        assert (found.pid, found.owner_pid, found.owner, found.owner_ended, found.seen) == (ME, 0, "", False, 2)
        assert looked(text, table=table, traced=dict.fromkeys(range(1 << 30, (1 << 30) + 65), 0)) == []


def asking(at: int, number: int = 5, tid: int = ME) -> Refused:
    return Refused(Lock("flock", "write", ME, 8 << 20 | 1, 99, 0, 0), number, at, tid)


def test_who_asks_again_and_again_waits_too(table: Path) -> None:
    """Requests are recent at three of four looks; somebody has the lock at two of them."""
    soon = time.monotonic_ns() + SOON
    answers = iter([[asking(0)], [asking(soon)], [asking(0)], []])
    look, began = FileLocks({ME: 0}, refused=lambda: next(answers)), time.monotonic_ns()
    for text in (OWNER % 1, OWNER % 1, OWNER % 1, b""):
        table.write_bytes(text)
        look.finish()
    found = {each.owner_pid: each for each in look.found({ME: 0}, began, time.monotonic_ns())}
    assert {owner: (each.pid, each.kind, each.seen, each.looks) for owner, each in found.items()} == {
        1: (ME, "flock", 2, 4),
        0: (ME, "flock", 1, 4),
    }
    assert found[1].owner.startswith(Path("/proc/1/comm").read_text().strip())
    assert found[0].owner == ""


def test_the_path_of_a_file_that_only_the_owner_has_open(table: Path, tmp_path: Path) -> None:
    """Processes that ask again and again may open the file each time."""
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        (mine,) = [each for each in Path("/proc/locks").read_text().split("\n") if f" {ME} " in each]
        table.write_text(f"{mine}\n")
        parts = mine.split()[5].split(":")
        wish = Lock("flock", "write", 1 << 30, int(parts[0], 16) << 20 | int(parts[1], 16), int(parts[2]), 0, 0)
        look = FileLocks({1 << 30: 0}, refused=lambda: [Refused(wish, 1, 1 << 62, 1 << 30)])
        look.finish()
        (found,) = look.found({1 << 30: 0}, 0, time.monotonic_ns())
    assert (found.owner_pid, found.path) == (ME, str(tmp_path / "lock"))


def test_for_whom_processes_wait_now(table: Path) -> None:
    look = FileLocks({ME: 0})
    for text in (OWNER % 1 + WAITER % ME, OWNER % 1 + WAITER % ME):
        table.write_bytes(text)
        look.finish()
    ((pair, waited),) = look.waited().items()
    assert pair == (ME, 1)
    assert waited == look._looks[1] - look._looks[0] > 0
    table.write_bytes(b"")
    look.finish()
    assert look.waited() == {}


@pytest.mark.parametrize(
    ("seen", "halves"),
    [
        ("10001", 1),  # once more, after a look at which nobody waited
        ("11111", 8),
        ("00111", 4),
        ("10101", 2),
        ("11001", 3),
        ("00001", 0),
    ],
)
def test_time_between_looks_at_which_nobody_waits_is_no_wait(
    table: Path, monkeypatch: pytest.MonkeyPatch, seen: str, halves: int
) -> None:
    """Looks 2 ns apart, and the time in halves of the time between two of them."""
    times = iter(range(2, 100, 2))
    monkeypatch.setattr(time, "monotonic_ns", lambda: next(times))
    look = FileLocks({ME: 0})
    for is_seen in seen:
        table.write_bytes(OWNER % 1 + WAITER % ME if is_seen == "1" else b"")
        look.finish()
    assert look.waited() == {(ME, 1): halves}


def test_of_several_files_the_longest_wait_counts(table: Path) -> None:
    first = OWNER % 1 + WAITER % ME
    look = FileLocks({ME: 0})
    for text in (first, first, first + first.replace(b":99", b":98")):
        table.write_bytes(text)
        look.finish()
    assert look.waited() == {(ME, 1): look._looks[2] - look._looks[0]}


def test_who_asks_once_a_second_waits_at_each_look(table: Path) -> None:
    """Four looks within that second."""
    table.write_bytes(OWNER % 1)
    now = time.monotonic_ns()
    answers = iter([[asking(now + SOON, 1)], [], [], [asking(now + SOON, 1)]])
    look = FileLocks({ME: 0}, refused=lambda: next(answers))
    for _ in range(4):
        look.finish()
    (found,) = look.found({ME: 0}, 0, time.monotonic_ns())
    assert (found.owner_pid, found.seen, found.looks, found.requests) == (1, 4, 4, 2)


def test_requests_are_counted_by_thread(table: Path) -> None:
    table.write_bytes(OWNER % 1)
    soon = time.monotonic_ns() + SOON
    answers = iter([[asking(soon, 3, 7), asking(soon, 2, 8)], [asking(soon, 4, 8)]])
    look = FileLocks({ME: 0}, refused=lambda: next(answers))
    look.finish()
    look.finish()
    (found,) = look.found({ME: 0}, 0, time.monotonic_ns())
    assert found.requests == 9
    assert [(each.tid, each.requests) for each in found.askers] == [(7, 3), (8, 6)]


def test_times_between_requests_are_added_up_unless_there_was_a_pause(table: Path) -> None:
    table.write_bytes(OWNER % 1)
    soon = time.monotonic_ns() + SOON
    after = (0, 400_000_000, 1_000_000_000, 4_000_000_000)
    answers = iter([[asking(soon + ns, 10)] for ns in after])
    look = FileLocks({ME: 0}, refused=lambda: next(answers))
    for _ in after:
        look.finish()
    (found,) = look.found({ME: 0}, 0, time.monotonic_ns())
    assert found.askers == [LockAsker(ME, 40, 20, 1_000_000_000)]


def test_a_table_that_was_cut_is_told(table: Path) -> None:
    look = FileLocks({ME: 0})
    for text, told in ((b"1" * ((1 << 20) - 1), 0), (b"1" * (1 << 20), 1), (b"", 1)):
        table.write_bytes(text)
        look.finish()
        assert len(look.remarks()) == told
    assert "is longer than 1 MiB" in str(look.remarks())
    look.next()
    assert look.remarks() == []


def test_what_the_main_loop_spends_counts_too(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks that cost 2 s of this thread: at most 2 % of the time are spent on them."""
    spent = iter(range(0, 1000, 2))
    monkeypatch.setattr(file_locks, "_SHARE", 0.02)
    monkeypatch.setattr(file_locks, "_table", lambda: OWNER % 1)
    monkeypatch.setattr(time, "thread_time", lambda: next(spent))
    look, began = FileLocks({ME: 0}), time.monotonic()
    look.finish()
    assert look._next - began >= (2 + 2) / 0.02
