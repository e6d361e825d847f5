"""Jobs of tools: tar, gzip, xz, git, make, rsync, dd."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from job import Job, Truth
from stage import PYTHON, Stage


def some_text(size: int, seed: int = 1) -> bytes:
    """Text that can be compressed, slowly."""
    words = [bytes(random.Random(number).choices(b"abcdefghij", k=6)) for number in range(2000)]
    return b" ".join(random.Random(seed).choices(words, k=size // 7))


def tar_gzip(stage: Stage) -> Sequence[int]:
    for number in range(40):
        (stage.folder / f"dump-{number}.txt").write_bytes(some_text(7_000_000, number))
    script = stage.write("backup.sh", "tar cf - dump-*.txt | gzip -9 > backup.tar.gz\n")
    backup = stage.start("sh", script.name)
    packed = stage.folder / "backup.tar.gz"
    stage.until(lambda: packed.exists() and packed.stat().st_size > 0, "something is compressed")
    return stage.tree(backup.pid, least=3)[1:]


def xz_threads(stage: Stage) -> Sequence[int]:
    (stage.folder / "dump.txt").write_bytes(some_text(60_000_000))
    process = stage.start("xz", "-k", "-6", "-T", "6", "--block-size=3MiB", "dump.txt")
    stage.until((stage.folder / "dump.txt.xz").exists, "xz writes")
    return [process.pid]


def git_repack(stage: Stage) -> Sequence[int]:
    stage.run("git", "init", "-q", "-b", "main", ".")
    stage.run("sh", "-c", f"{PYTHON} {stage.program('many_commits.py')} | git fast-import --quiet")
    process = stage.start("git", "repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=200")
    return stage.tree(process.pid, least=2)


def make_slow_file(stage: Stage) -> Sequence[int]:
    loop = "for (int i = 0; i < 1000; i++) { s = s * x[i] + x[i ^ %d]; if (s > %d) s -= x[i]; }"
    functions = [f"double f{n}(double *x) {{ double s = {n}; {loop % (n % 7, n)} return s; }}\n" for n in range(6000)]
    stage.write("tables.c", "".join(functions))
    stage.write("Makefile", "tables.o: tables.c\n\tcc -O2 -c tables.c\n")
    process = stage.start("make", "-s")
    return stage.tree(process.pid, least=3)


def rsync_fsync(stage: Stage) -> Sequence[int]:
    source = stage.folder / "mails"
    source.mkdir()
    for number in range(2000):
        (source / f"{number}").write_bytes(b"x" * 100)
    process = stage.start("rsync", "-a", "--fsync", "mails/", "copy/", groups=[stage.slow_disk()])
    return stage.tree(process.pid, least=3)


def sqlite_commits(stage: Stage) -> Sequence[int]:
    script = "create table log (n integer);\n" + "insert into log values (1);\n" * 100_000
    stage.write("commits.sql", script)
    process = stage.start("sqlite3", "log.db", ".read commits.sql", groups=[stage.slow_disk()])
    stage.until((stage.folder / "log.db").exists, "sqlite3 writes")
    return [process.pid]


def openssl_speed(stage: Stage) -> Sequence[int]:
    process = stage.start("openssl", "speed", "-multi", "6", "-seconds", "30", "-bytes", "16384", "sha256")
    return stage.tree(process.pid, least=7)


def flock_deadlock(stage: Stage) -> Sequence[int]:
    for name, other in (("east", "west"), ("west", "east")):
        stage.write(f"{name}.sh", f"sleep 0.3\nexec flock {other}.lock true\n")
    started = [stage.start("flock", f"{name}.lock", "sh", f"{name}.sh").pid for name in ("east", "west")]
    time.sleep(0.6)
    return [pid for process in started for pid in stage.tree(process, least=2)]


def ssh_banner(stage: Stage) -> Sequence[int]:
    port = stage.port()
    server = stage.python("silent_server.py", port)
    options = ["-F", "none", "-o", "ConnectTimeout=100", "-p", port]
    return [stage.start("ssh", *options, "127.0.0.1").pid, server]


def dd_direct(stage: Stage) -> Sequence[int]:
    stage.run("dd", "if=/dev/zero", "of=volume", "bs=1M", "count=1500", "oflag=direct")
    process = stage.start("dd", "if=volume", "of=/dev/null", "bs=4k", "iflag=direct")
    return [process.pid]


JOBS = (
    Job(
        "tar_gzip",
        Truth(
            ("peer", "cpu"),
            ("tar|gzip",),
            ("gzip",),
            "tar waits for room in the pipe to gzip, which computes all the time",
        ),
        tar_gzip,
        {"tar": "tar", "gzip": "gzip"},
        commands=("offcpu", "wall", "wakeup"),
    ),
    Job(
        "xz_threads",
        Truth(
            ("cores",),
            ("xz",),
            ("6 .*threads|threads .*cores|lzma",),
            "six threads compress on two cores",
        ),
        xz_threads,
        {"xz": "xz-utils"},
    ),
    Job(
        "git_repack",
        Truth(
            ("cpu", "cores", "peer"),
            ("git",),
            ("delta|git",),
            "git computes the differences of many versions of a file",
        ),
        git_repack,
        {PYTHON: "python3", "git": "git"},
        commands=("wall",),
    ),
    Job(
        "make_slow_file",
        Truth(
            ("child", "cpu"),
            ("make",),
            ("cc1",),
            "make waits for its compiler",
        ),
        make_slow_file,
        {"make": "make", "cc": "gcc"},
        commands=("offcpu", "wall"),
    ),
    Job(
        "rsync_fsync",
        Truth(("io",), ("rsync",), ("fsync",), "each of many small files is brought to the disk"),
        rsync_fsync,
        {"rsync": "rsync"},
    ),
    Job(
        "sqlite_commits",
        Truth(("io",), ("sqlite3",), ("fsync|fdatasync|unlink",), "each row is a transaction that goes to the disk"),
        sqlite_commits,
        {"sqlite3": "sqlite3"},
    ),
    Job(
        "openssl_speed",
        Truth(
            ("cores",),
            ("openssl",),
            ("openssl.*openssl|6 processes|6 main|outnumber",),
            "six processes of a program compute on two cores",
        ),
        openssl_speed,
        {"openssl": "openssl"},
        commands=("wall",),
    ),
    Job(
        "flock_deadlock",
        Truth(
            ("file-lock", "deadlock"),
            ("flock",),
            ("flock",),
            "two programs wait for the lock of the file that the other one has",
        ),
        flock_deadlock,
        {"flock": "util-linux"},
    ),
    Job(
        "ssh_banner",
        Truth(
            ("peer", "network"),
            ("ssh",),
            ("silent_server.py|read|recv|poll",),
            "ssh waits for the first line of a server that says nothing",
        ),
        ssh_banner,
        {PYTHON: "python3", "ssh": "openssh-client"},
    ),
    Job(
        "dd_direct",
        Truth(("io",), ("dd",), ("read",), "a disk is read in small pieces, past the page cache"),
        dd_direct,
        {"dd": "coreutils"},
    ),
)
