"""A real server of elfutils, and others that do not behave."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from stallscope.tracers.images import debuginfod as subject
from stallscope.tracers.images.debuginfod import Debuginfod
from stallscope.tracers.images.elf import ElfFile, FileSource

BUILD_ID = "ab" * 20
OTHER = "cd" * 20


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The client keeps what it got, and that there was nothing to get."""
    path = tmp_path / "cache"
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(path))
    monkeypatch.setattr(subject, "end_was_requested", lambda: False)
    return path


class Server:
    """Answers every request with ``status``; ``asked`` are the paths."""

    def __init__(self, status: int) -> None:
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                self.send_error(status)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Server]]:
    servers = []

    def start(status: int) -> Server:
        servers.append(Server(status))
        monkeypatch.setenv("DEBUGINFOD_URLS", servers[-1].url)
        return servers[-1]

    yield start
    for server in servers:
        server.close()


class Silent:
    """Takes connections and says nothing."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._taken: list[socket.socket] = []

    def take(self) -> None:
        """One, when it comes."""
        self._taken.append(self._server.accept()[0])

    def count(self) -> int:
        """Number of those that came since the last call."""
        before = len(self._taken)
        self._server.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.take()
        return len(self._taken) - before

    def close(self) -> None:
        for connection in self._taken:
            connection.close()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.delenv("DEBUGINFOD_TIMEOUT", raising=False)
        taking = Silent(server)
        yield taking
        taking.close()


def client(on_progress: Callable[[str], None] | None = None) -> Debuginfod:
    found = Debuginfod.from_environment(on_progress)
    assert found is not None
    return found


def test_from_a_real_server(serve_debug_file: Callable[[Path], Path], program: Path, cache: Path) -> None:
    debug = serve_debug_file(program)
    with program.open("rb") as file:
        build_id = ElfFile(FileSource(file.fileno())).build_id()
    asked = client()
    fd = asked.find(build_id, "program")
    assert fd is not None
    assert os.pread(fd, 1 << 24, 0) == debug.read_bytes()
    os.close(fd)
    assert asked.find(OTHER, "another") is None
    assert asked.problem == ""
    assert list(cache.rglob("debuginfo"))
    asked.close()
    assert asked.find(build_id, "program") is None


@pytest.mark.parametrize("urls", [None, "", "  "])
def test_not_without_servers(urls: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if urls is not None:
        monkeypatch.setenv("DEBUGINFOD_URLS", urls)
    assert Debuginfod.from_environment() is None


def test_what_a_server_does_not_have_ends_nothing(serve: Callable[[int], Server]) -> None:
    server = serve(404)
    asked = client()
    ids = [f"{i:040x}" for i in range(1, 10)]
    assert [asked.find(build_id, "x") for build_id in ids] == [None] * 9
    assert asked.problem == ""
    assert server.asked == [f"/buildid/{build_id}/debuginfo" for build_id in ids]


def test_a_server_that_is_not_there_is_soon_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:{free.getsockname()[1]}")
    asked = client()
    for i in range(1, 4):
        assert asked.problem == ""
        assert asked.find(f"{i:040x}", "x") is None
    assert asked.problem == "debuginfod was asked no more: Connection refused"


@pytest.mark.parametrize(
    "build_id",
    ["", "ab", "ab" * 7, "ab" * 33, "00" * 20, "zz" * 20, "../" * 10, "ab" * 10 + "/debuginfo", "a" * 41, "é" * 40],
)
def test_build_ids_that_are_none_are_not_asked_for(build_id: str, serve: Callable[[int], Server]) -> None:
    server = serve(404)
    asked = client()
    assert asked.find(build_id, "x") is None
    assert server.asked == []
    assert asked.problem == ""


def test_a_silent_server_is_asked_once(silent: Silent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_PATIENCE", 1.0)
    asked = client()
    assert asked.find(BUILD_ID, "x") is None
    assert asked.problem == "debuginfod was asked no more: nothing came from the server"
    assert silent.count() > 0
    assert asked.find(OTHER, "x") is None
    assert silent.count() == 0
    asked.close()


def test_a_slow_server_is_asked_no_more(serve: Callable[[int], Server], monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(404)
    monkeypatch.setattr(subject, "_IN_VAIN", 0.0)
    asked = client()
    asked.find(BUILD_ID, "x")
    assert asked.problem == "debuginfod was asked no more: too slow"
    asked.find(OTHER, "x")
    assert len(server.asked) == 1


def test_ctrl_c_only_ends_the_asking(silent: Silent, ctrl_c: None) -> None:
    def interrupt() -> None:
        silent.take()
        os.kill(os.getpid(), signal.SIGINT)

    asked = client()
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    assert asked.find(BUILD_ID, "libx.so") is None
    interrupting.join()
    assert asked.problem == "debuginfod was asked no more: interrupted"
    asked.close()


def test_no_silent_server_is_waited_for_after_ctrl_c(silent: Silent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "end_was_requested", lambda: True)
    begin = time.monotonic()
    asked = client()
    assert asked.find(BUILD_ID, "x") is None
    assert time.monotonic() - begin < subject._PATIENCE / 2
    assert asked.problem.startswith("debuginfod was asked no more: after Ctrl-C nothing came from the server for 1.5 s")
    asked.close()


def test_answers_of_nothing_are_not_waited_for_without_end(
    serve: Callable[[int], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a server does not have takes, after Ctrl-C, no longer than one answer."""
    monkeypatch.setattr(subject, "end_was_requested", lambda: True)
    monkeypatch.setattr(subject, "_AT_END", 0.0)
    server = serve(404)
    asked = client()
    for i in range(1, 6):
        asked.find(f"{i:040x}", "x")
    assert len(server.asked) <= 1
    assert "after Ctrl-C" in asked.problem


def test_a_trickle_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(subject, "end_was_requested", lambda: True)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    asked = client()
    for size, seconds, late in ((0, 1, False), (1 << 16, 1, False), (1 << 17, 1, False), ((1 << 17) + 9, 2, True)):
        asked._bytes = size
        now += seconds
        assert asked._is_late() is late
    asked.close()


def test_progress_is_told_before_a_server_answers(silent: Silent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_PATIENCE", 1.0)
    said: list[str] = []
    assert client(said.append).find(BUILD_ID, "libx.so") is None
    assert set(said) == {"debuginfod: libx.so"}


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    monkeypatch.setattr(subject, "_LIBRARY", "libnonexistent.so.1")
    asked = client()
    assert asked.find(BUILD_ID, "x") is None
    assert "install libnonexistent.so.1" in asked.problem
    asked.close()


def test_the_cache_is_never_in_another_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    client().close()
    assert os.environ["DEBUGINFOD_CACHE_PATH"] == ""
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    import pwd

    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(("u", "", 1, 1, "", "/own/home", "")))
    client().close()
    assert os.environ["DEBUGINFOD_CACHE_PATH"] == "/own/home/.cache/debuginfod_client"
