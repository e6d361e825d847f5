"""The process that reads others is abandoned when it has no answer in time."""

from __future__ import annotations

import marshal
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stallscope.tracers.outside import client
from stallscope.tracers.outside.client import Client, NotRead
from stallscope.tracers.outside.owners import user_of


@pytest.fixture
def asked() -> Iterator[Client]:
    made = Client()
    yield made
    made.close()


def child_of(asked: Client) -> int:
    asked.begin()
    assert asked._child
    return asked._child.pid


def stopped(asked: Client) -> int:
    """Stops the process as one that waits in the kernel: it does not answer."""
    pid = child_of(asked)
    asked.ask("maps", os.getpid(), True)
    os.kill(pid, signal.SIGSTOP)
    return pid


def test_another_one_answers_when_one_was_abandoned(asked: Client) -> None:
    first = stopped(asked)
    begin = time.monotonic()
    with pytest.raises(NotRead):
        asked.ask("maps", os.getppid(), True, pid=os.getppid())
    assert time.monotonic() - begin >= 1
    with pytest.raises(NotRead, match="before"):
        asked.ask("maps", os.getppid(), True, pid=os.getppid())
    assert asked.ask("maps", os.getpid(), True, pid=os.getpid())[0]
    assert child_of(asked) != first
    assert asked.pids == {first, child_of(asked)}
    assert asked.remarks() == [
        f"memory or files of 1 process could not be read in time, of user {os.getuid()}: names, and the stacks of "
        "waits that began before the trace, are missing there"
    ]


def test_a_process_with_the_id_of_a_silent_one_is_asked(asked: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(asked)
    with pytest.raises(NotRead):
        asked.ask("maps", os.getpid(), True, pid=os.getpid())
    monkeypatch.setattr(client, "_began", lambda pid: b"another")
    assert asked.ask("maps", os.getpid(), True, pid=os.getpid())[0]


def test_after_a_few_nothing_is_read(asked: Client) -> None:
    begin = time.monotonic()
    for number in range(client._MOST):
        stopped(asked)
        with pytest.raises(NotRead):
            asked.ask("path", b"/", 0, 0, 0, folder=f"/{number}")
    spent = time.monotonic() - begin
    with pytest.raises(NotRead):
        asked.ask("maps", os.getpid(), True)
    assert asked.remarks()[-1] == f"after {client._MOST} of them nothing of other processes was read"
    times = [*client._PATIENCE, *[client._PATIENCE[-1]] * (client._MOST - len(client._PATIENCE))]
    assert sum(min(seconds, client._HURRY) for seconds in times) <= 1.6, "which a trace may wait after its end"
    assert spent >= sum(times)


def make_silent(asked: Client, user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more process of a user."""
    stopped(asked)
    monkeypatch.setattr(client, "user_of", lambda pid: user)
    with pytest.raises(NotRead):
        asked.ask("maps", 1, True, pid=10_000_000 + asked._number)


@pytest.mark.parametrize("user", [54_321, 0], ids=["a user", "root"])
def test_a_user_does_not_use_up_what_others_have(
    user: int, asked: Client, monkeypatch: pytest.MonkeyPatch, root: None
) -> None:
    share = client._MOST_OF_USER if user else client._MOST_OF_ROOT
    assert share < client._MOST
    for _ in range(share):
        make_silent(asked, user, monkeypatch)
    begin = ["setpriv", "--reuid=54321", "--clear-groups", "--", "sleep", "60"]
    with subprocess.Popen(begin) as of_user:
        refused, read = (of_user.pid, os.getpid()) if user else (os.getpid(), of_user.pid)
        wait_for_user(of_user.pid)
        with pytest.raises(NotRead, match="others of this user"):
            asked.ask("maps", refused, True, pid=refused)
        assert asked.ask("maps", read, True, pid=read)[0]
        where = asked.ask("files", [refused, read], [("comm", 9)], 1 << 20)[0]
        assert marshal.loads(where) == [[None], [Path(f"/proc/{read}/comm").read_bytes()[:9]]]
        of_user.kill()
    first, *others = asked.remarks()
    assert first.startswith(f"memory or files of {share} processes could not be read in time, of user {user}:")
    assert others == [f"nothing more was read of user {user}, of whom several did not answer"]


def wait_for_user(pid: int) -> None:
    """Waits until a process is no longer root's."""
    until = time.monotonic() + 30
    while user_of(pid) == 0:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_it_hurries_when_the_command_is_about_to_end(asked: Client) -> None:
    assert asked._patience() == client._PATIENCE[0]
    asked.hurry()
    assert asked._patience() == client._HURRY


def test_one_that_has_ended_is_replaced(asked: Client) -> None:
    pid = child_of(asked)
    asked.ask("maps", os.getpid(), True)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(OSError, match="ended"):
        asked.ask("maps", os.getpid(), True)
    assert asked.ask("maps", os.getpid(), True)[0]
    assert not asked.remarks()


def test_an_answer_to_an_interrupted_request_is_not_taken_for_another(asked: Client) -> None:
    child_of(asked)
    assert asked._child
    asked._number += 1
    asked._send(asked._child, (asked._number, "maps", None, os.getpid(), True), None)  # nobody takes its answer
    with pytest.raises(FileNotFoundError):
        asked.ask("maps", 1 << 22, True)


def test_it_ends_with_us_and_has_nothing_of_ours() -> None:
    """Descriptors that can be inherited are closed: a lock of whoever started the command, for example."""
    code = (
        "import os; from stallscope.tracers.outside.client import CLIENT\n"
        "os.set_inheritable(os.dup2(os.open('/dev/zero', os.O_RDONLY), 77), True)\n"
        "CLIENT.ask('maps', os.getpid(), True); pid = CLIENT._child.pid\n"
        "of = f'/proc/{pid}'\n"
        "print(pid, max(map(int, os.listdir(f'{of}/fd'))), os.getsid(pid) == pid, os.readlink(f'{of}/cwd'))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert told[1:] == ["5", "True", "/"], "the last one is that of the memory that is mapped"
    until = time.monotonic() + 30
    while os.path.exists(f"/proc/{told[0]}/exe"):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_forked_process_has_its_own() -> None:
    asked = client.CLIENT
    pid = child_of(asked)
    if not (forked := os.fork()):
        ok = asked._child is None and bool(asked.ask("maps", os.getpid(), True)[0]) and child_of(asked) != pid
        os._exit(0 if ok else 1)
    assert os.waitpid(forked, 0)[1] == 0
    assert child_of(asked) == pid
    assert asked.ask("maps", os.getpid(), True)[0]
