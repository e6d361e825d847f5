"""Six sessions of PostgreSQL (Debian's) update one row, each in a transaction that takes some milliseconds."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = """begin;
update hot set n = n + 1 where id = 1;
select pg_sleep(0.003);
commit;
"""
USER = 65534  # the server refuses to run as root

found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
if not found:
    print("cannot run here: no PostgreSQL (Debian's package postgresql)")
    sys.exit()
programs = found[-1].parent


def run(program: str, *arguments: str) -> None:
    line = [str(programs / program), *arguments]
    done = subprocess.run(line, user=USER, group=USER, extra_groups=[], capture_output=True, text=True, cwd="/")
    if done.returncode:
        sys.exit(f"{program}: {done.stdout} {done.stderr}")


def command_line(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def sessions(server: int) -> list[int]:
    """Processes of the server that work for clients."""
    of_server = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return [int(pid) for pid in of_server if b"[local]" in command_line(pid)]


with tempfile.TemporaryDirectory() as folder:
    os.chown(folder, USER, USER)
    data, here = f"{folder}/data", ["-h", folder, "-U", "postgres"]
    run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
    server = subprocess.Popen(
        [programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        user=USER, group=USER, extra_groups=[], stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd="/",
    )  # fmt: skip
    bench = None
    try:
        while subprocess.run([programs / "pg_isready", *here], stdout=subprocess.DEVNULL).returncode:
            if server.poll() is not None:
                sys.exit("the server ended")
            time.sleep(0.05)
        run("psql", *here, "-c", "create table hot (id int primary key, n bigint); insert into hot values (1, 0)")
        script = Path(folder, "script.sql")
        script.write_text(SCRIPT)
        bench = subprocess.Popen(
            [programs / "pgbench", *here, "-n", "-c", "6", "-T", "60", "-f", script, "postgres"],
            stdin=subprocess.DEVNULL, stdout=sys.stderr,
        )  # fmt: skip
        deadline = time.monotonic() + 20
        while len(pids := sessions(server.pid)) < 6 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)
        print(*pids, flush=True)
        sys.stdin.read()
    finally:
        if bench:
            bench.kill()
            bench.wait()
        server.terminate()
        server.wait()
