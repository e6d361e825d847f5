"""Jobs of database servers: PostgreSQL, redis, MariaDB, memcached."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

from job import Job, Truth
from stage import NOBODY, PYTHON, Stage

REDIS = "redis-check-rdb"
"""The server under another name: of the package redis-tools, which starts no daemon."""
REDIS_HERE = {REDIS: "redis-tools"}
PYTHON_HERE = {PYTHON: "python3"}
_VERSIONS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_HOME = _VERSIONS[-1] if _VERSIONS else Path("/usr/lib/postgresql/bin")
POSTGRES_HERE = {str(_HOME / "postgres"): "postgresql", str(_HOME / "pgbench"): "postgresql-contrib"}
PSYCOPG = {"psycopg2": "python3-psycopg2"}


class Postgres:
    """A server in the folder of a stage, with a table of one row."""

    def __init__(self, stage: Stage, *options: str, groups: Iterable[Path] = ()) -> None:
        self._stage, self._folder = stage, stage.folder / "pg"
        self._folder.mkdir()
        shutil.chown(self._folder, NOBODY, NOBODY)
        data = self._folder / "data"
        stage.run(_HOME / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", user=NOBODY)
        common = ["-c", "listen_addresses=", "-c", "autovacuum=off", "-c", "bgwriter_delay=10000"]
        command = [_HOME / "postgres", "-D", data, "-k", self._folder, *common, *options]
        self.pid = stage.start(*command, user=NOBODY, groups=groups, end=signal.SIGINT).pid
        stage.listening(self._folder / ".s.PGSQL.5432")
        stage.until(lambda: "accepting" in self._state(), "PostgreSQL accepts connections")
        self.ask("create table hot (id int primary key, n bigint)")
        self.ask("insert into hot values (1, 0)")

    @property
    def host(self) -> str:
        return str(self._folder)

    def _state(self) -> str:
        return self._stage.run("sh", "-c", f"{_HOME}/pg_isready -h {self._folder} || true")

    def ask(self, query: str) -> str:
        return self._stage.run(
            _HOME / "psql", "-h", self._folder, "-U", "postgres", "-X", "-A", "-t", "-q", "-c", query
        )

    def bench(self, clients: int, script: str) -> int:
        """Sessions of pgbench that run this again and again. Its process."""
        path = self._stage.write("bench.sql", script)
        command = [_HOME / "pgbench", "-h", self._folder, "-U", "postgres", "-n", "-c", clients, "-T", "60", "-f", path]
        bench = self._stage.start(*command, "postgres", environment={"PGAPPNAME": "bench"}).pid
        self._stage.until(lambda: len(self.sessions("bench")) >= clients, "pgbench has its sessions")
        return bench

    def sessions(self, name: str) -> list[int]:
        return [
            int(pid) for pid in self.ask(f"select pid from pg_stat_activity where application_name='{name}'").split()
        ]


def idle_in_transaction(stage: Stage) -> Sequence[int]:
    server = Postgres(stage)
    billing = stage.python("idle_transaction.py", server.host)
    bench = server.bench(3, "update hot set n = n + 1 where id = 1;\n")
    stage.until(
        lambda: server.ask("select count(*) from pg_stat_activity where wait_event_type='Lock'").strip() == "3",
        "three sessions wait for the row",
    )
    return [*server.sessions("bench"), *server.sessions("billing"), billing, bench]


def commits(stage: Stage) -> Sequence[int]:
    server = Postgres(stage, groups=[stage.slow_disk()])
    server.ask("create table log (n bigint)")
    server.bench(4, "insert into log values (1);\n")
    return server.sessions("bench")


def scans(stage: Stage) -> Sequence[int]:
    server = Postgres(stage, "-c", "max_parallel_workers_per_gather=0")
    server.ask("create table orders as select n as id, n % 977 as customer from generate_series(1, 200000) as n")
    bench = server.bench(1, "select count(*) from orders where customer = 7;\n")
    return [*server.sessions("bench"), bench]


def pool_of_one(stage: Stage) -> Sequence[int]:
    server = Postgres(stage)
    client = stage.python("pool_of_one.py", server.host)
    return [client, *server.sessions("shop")]


def try_lock(stage: Stage) -> Sequence[int]:
    server = Postgres(stage)
    roles = ("holder", "waiter", "another")
    clients = [stage.python("try_lock.py", server.host, role) for role in roles]
    return [*clients, *(pid for role in roles for pid in server.sessions(role))]


def idle_postgres(stage: Stage) -> Sequence[int]:
    server = Postgres(stage)
    server.bench(3, "\\sleep 500 ms\nselect 1;\n")
    processes = 8  # the server, four of its own, three sessions; not those that were asked with
    stage.until(lambda: len(stage.tree(server.pid)) == processes, f"PostgreSQL has {processes} processes")
    return stage.tree(server.pid)


def redis(stage: Stage) -> tuple[int, Path]:
    """A server. Its process and socket."""
    path = stage.folder / "redis"
    (stage.folder / "redis-server").symlink_to(shutil.which(REDIS) or REDIS)
    server = stage.start("./redis-server", "--port", "0", "--unixsocket", path, "--dir", stage.folder, "--save", "")
    stage.listening(path)
    return server.pid, path


def redis_script(stage: Stage) -> Sequence[int]:
    server, path = redis(stage)
    return [server, *(stage.python("redis_client.py", path, role) for role in ("report", "get"))]


def redis_lock(stage: Stage) -> Sequence[int]:
    server, path = redis(stage)
    return [server, *(stage.python("redis_client.py", path, role) for role in ("hold", "lock", "lock"))]


def mariadb(stage: Stage) -> Sequence[int]:
    data, path = stage.folder / "db", stage.folder / "mariadb"
    stage.run("mariadb-install-db", f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal")
    options = [f"--datadir={data}", f"--socket={path}", "--skip-networking", "--user=root", f"--pid-file={data}/pid"]
    server = stage.start("mariadbd", "--no-defaults", *options).pid
    stage.listening(path)
    client = ["mariadb", "--no-defaults", "-S", path, "-u", "root", "-e"]
    stage.run(*client, "create database shop; create table shop.hot (id int primary key, n bigint) engine=innodb")
    stage.run(*client, "insert into shop.hot values (1, 0)")
    change = "update shop.hot set n = n + 1 where id = 1"
    stage.start(*client, f"set autocommit=0; {change}; select 'changed'; select sleep(60)", "-n", ready="")
    waiting = "select count(*) from information_schema.innodb_trx"
    stage.until(lambda: stage.run(*client, waiting, "-N", "-B").strip() == "1", "one client has the row")
    clients = [stage.start(*client, change).pid for _ in range(3)]
    stage.until(lambda: stage.run(*client, waiting, "-N", "-B").strip() == "4", "three clients wait for the row")
    return [server, *clients]


def memcached(stage: Stage) -> Sequence[int]:
    path = stage.folder / "memcached"
    server = stage.start("memcached", "-u", "root", "-s", path, "-t", "2")
    stage.listening(path)
    stage.python("ping_cache.py", path)
    return [server.pid]


JOBS = (
    Job(
        "postgres_idle_in_transaction",
        Truth(
            ("database-lock",),
            ("3 (of the 4 )?main threads", "postgres"),
            ("XactLockTableWait|row lock", "idle_transaction.py|make_invoice|idle in a transaction|ClientRead"),
            "three sessions wait for a row; its holder is idle in a transaction, because its client sleeps",
        ),
        idle_in_transaction,
        {**PYTHON_HERE, **POSTGRES_HERE},
        PSYCOPG,
        commands=("offcpu", "wakeup"),
    ),
    Job(
        "postgres_commits",
        Truth(
            ("io", "lock", "database-lock"),
            ("postgres",),
            ("fdatasync|XLogWrite|issue_xlog_fsync",),
            "sessions commit small transactions: they wait for the log on the disk",
        ),
        commits,
        POSTGRES_HERE,
    ),
    Job(
        "postgres_scan",
        Truth(
            ("cpu",),
            ("postgres",),
            ("SeqScan|heap_?get|ExecInterpExpr|ExecScan|ExecAgg",),
            "each query reads a whole table, for want of an index",
        ),
        scans,
        POSTGRES_HERE,
        commands=("wall",),
    ),
    Job(
        "postgres_pool_of_one",
        Truth(
            ("thread", "lock"),
            ("threads", "python3 pool_of_one.py"),
            ("take_connection", "run_query|execute|pg_sleep"),
            "threads wait for the only connection of a pool, which another one uses",
        ),
        pool_of_one,
        {**PYTHON_HERE, **POSTGRES_HERE},
        PSYCOPG,
    ),
    Job(
        "postgres_try_lock",
        Truth(
            ("database-lock", "polling"),
            ("try_lock.py",),
            ("take_turn", "rebuild_prices|again"),
            "two clients try again and again to take a lock of the database; the one that has it sleeps",
        ),
        try_lock,
        {**PYTHON_HERE, **POSTGRES_HERE},
        PSYCOPG,
    ),
    Job(
        "postgres_idle",
        Truth(("idle",), ("postgres",), ("idle|wait.* for work|nothing",), "a server that has almost nothing to do"),
        idle_postgres,
        POSTGRES_HERE,
    ),
    Job(
        "redis_script",
        Truth(
            ("peer", "cpu"),
            ("redis_client.py|redis-server",),
            ("redis-server", "lua|script|eval|on a core"),
            "a client waits for redis, which runs another client's long script",
        ),
        redis_script,
        {**PYTHON_HERE, **REDIS_HERE},
        commands=("offcpu", "wall"),
    ),
    Job(
        "redis_lock",
        Truth(
            ("polling", "lock"),
            ("redis_client.py",),
            ("acquire_lock",),
            "two clients ask again and again, with a sleep, for a lock that another one keeps in redis",
        ),
        redis_lock,
        {**PYTHON_HERE, **REDIS_HERE},
    ),
    Job(
        "mariadb_row_lock",
        Truth(
            ("database-lock",),
            ("3 .*threads|mariadbd",),
            ("ha_index_read_map|lock_wait|row lock", "Item_func_sleep|sleep"),
            "three sessions wait for a row, whose holder sleeps in its transaction",
        ),
        mariadb,
        {"mariadbd": "mariadb-server", "mariadb": "mariadb-client"},
    ),
    Job(
        "memcached_idle",
        Truth(("idle",), ("memcached",), ("idle|wait.* for work|nothing",), "a server that has almost nothing to do"),
        memcached,
        {**PYTHON_HERE, "memcached": "memcached"},
        commands=("offcpu", "wakeup"),
    ),
)
