"""A PostgreSQL server (Debian's) with sessions that update one row, and what it says of who blocks whom."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType

USER = 65534
"""The server refuses to run as root."""
_FOLDERS = Path("/usr/lib/postgresql")
_SCRIPT = "begin;\nupdate hot set n = n + 1 where id = 1;\nselect pg_sleep({seconds});\ncommit;\n"
_BLOCKING = """select string_agg(pid || '>' || blocker, ' ') from (select pid, unnest(pg_blocking_pids(pid)) as blocker
from pg_stat_activity where wait_event_type = 'Lock') as each"""
_EVERY = 0.02


def programs() -> Path | None:
    """The folder of the newest installed version's programs."""
    found = sorted(_FOLDERS.glob("*/bin/postgres"))
    return found[-1].parent if found else None


class HotRow:
    """Sessions "quick" hold the row for 1 ms in each transaction, "slow" for SLOW ms, then it pauses for as long.

    A context manager.
    """

    def __init__(self, quick: int, slow_ms: int) -> None:
        self._quick, self._slow = quick, slow_ms
        self._folder = tempfile.TemporaryDirectory()
        self._started: list[subprocess.Popen[bytes]] = []
        self.pids: list[int] = []
        """Ids of the sessions' processes, the slow one last."""

    def __enter__(self) -> HotRow:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    @property
    def slow(self) -> int:
        return self.pids[-1]

    def roots(self, seconds: float) -> dict[int, Counter[int]]:
        """Number of times that each session was seen to be blocked by each other one, at the end of the queue, by
        pg_blocking_pids(), which is asked for so long."""
        found: dict[int, Counter[int]] = {}
        watch = f"{' '.join(_BLOCKING.split())} \\watch {_EVERY}\n"
        line = [self._home / "psql", "-h", self._folder.name, "-U", "postgres", "-A", "-t", "-q"]
        asking = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=USER, cwd="/")
        timer = threading.Timer(seconds, asking.terminate)
        timer.start()
        sampled, _ = asking.communicate(watch)
        timer.cancel()
        for row in sampled.splitlines():
            pairs = re.findall(r"(\d+)>(\d+)", row)
            by = {int(waits): int(blocker) for waits, blocker in reversed(pairs)}
            for waits in by:
                at, seen = waits, {0}
                while at in by and at not in seen:
                    seen.add(at)
                    at = by[at]
                found.setdefault(waits, Counter())[at] += 1
        return found

    def _start(self) -> None:
        home = programs()
        assert home
        self._home, folder = home, self._folder.name
        os.chown(folder, USER, USER)
        data = f"{folder}/data"
        self._run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
        options = ["-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        self._server = self._popen("postgres", *options)
        while self._status("pg_isready"):
            assert self._server.poll() is None, "the server ended"
            time.sleep(0.05)
        self._ask("create table hot (id int primary key, n bigint)")
        self._ask("insert into hot values (1, 0)")
        quick = self._bench("quick", self._quick, _SCRIPT.format(seconds=0.001))
        slow = _SCRIPT.format(seconds=self._slow / 1000) + f"\\sleep {self._slow} ms\n"
        self.pids = quick + self._bench("slow", 1, slow)

    def _bench(self, name: str, clients: int, script: str) -> list[int]:
        path = Path(self._folder.name, f"{name}.sql")
        path.write_text(script)
        before = set(self._sessions())
        arguments = ["-n", "-c", str(clients), "-T", "120", "-f", str(path), "postgres"]
        self._popen("pgbench", "-h", self._folder.name, "-U", "postgres", *arguments, application="pgbench")
        while len(new := set(self._sessions()) - before) < clients:
            time.sleep(0.05)
        return sorted(new)

    def _sessions(self) -> list[int]:
        # pgbench first asks for its tables, in a session that ends before those of its clients begin.
        of_clients = "query ~ '^(begin|update hot|select pg_sleep|commit)'"
        query = f"select pid from pg_stat_activity where application_name = 'pgbench' and {of_clients}"
        return [int(pid) for pid in self._ask(query).split()]

    def _ask(self, query: str) -> str:
        return self._run("psql", "-h", self._folder.name, "-U", "postgres", "-A", "-t", "-q", "-c", query)

    def _status(self, program: str) -> int:
        line = [self._home / program, "-h", self._folder.name, "-U", "postgres"]
        return subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def _run(self, program: str, *arguments: str) -> str:
        line = [self._home / program, *arguments]
        done = subprocess.run(line, user=USER, group=USER, extra_groups=[], capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _popen(self, program: str, *arguments: str, application: str = "") -> subprocess.Popen[bytes]:
        null = subprocess.DEVNULL
        started = subprocess.Popen(
            [self._home / program, *arguments], user=USER, group=USER, extra_groups=[], stdin=null, stdout=null,
            stderr=null, cwd="/", env={**os.environ, "PGAPPNAME": application},
        )  # fmt: skip
        self._started.append(started)
        return started

    def _end(self) -> None:
        for process in reversed(self._started):
            process.terminate()
        for process in reversed(self._started):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._folder.cleanup()
