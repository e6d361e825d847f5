from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from stallscope.converters.model.processes import cpu_list
from stallscope.tracers.base import neighbours
from stallscope.tracers.base.neighbours import Neighbours, _read

BURN = "import os, time\nwhile time.process_time() < 0.5: pass\nprint(os.getpid(), flush=True)\ninput()"
SECOND = 1_000_000_000


def test_who_used_cores_and_was_not_traced() -> None:
    look = Neighbours()
    alone = ["setsid", "-f", sys.executable, "-c", BURN]  # no child of ours
    with subprocess.Popen(alone, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdin and one.stdout
        pid = int(one.stdout.readline())
        look.end()
        (found,) = [each for each in look.found((), SECOND) if each.pid == pid]
        assert found.process.startswith("python")
        assert 0 < found.on_cpu <= SECOND
        assert found.cpus == cpu_list(os.sched_getaffinity(pid))
        assert pid not in {each.pid for each in look.found({pid}, SECOND)}
        assert os.getpid() not in {each.pid for each in look.found((), SECOND)}
        one.stdin.close()


def test_a_name_with_any_character() -> None:
    code = "import ctypes; ctypes.CDLL(None).prctl(15, b') R 1 (', 0, 0, 0); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdin and one.stdout
        one.stdout.readline()
        used = _read(one.pid)
        one.stdin.close()
    assert used and used.name == ") R 1 ("
    assert used.ticks >= 0
    assert used.began > 0


def test_who_has_ended() -> None:
    assert neighbours._read(1 << 30) is None


def test_who_ends_waits_has_the_name_of_its_script(tmp_path: Path) -> None:
    """A process that did not use cores is found by those whose waits it ended, if it is still the same one."""
    script = tmp_path / "rates.py"
    script.write_text("print(flush=True)\ninput()")
    look = Neighbours()
    with subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdin and one.stdout
        one.stdout.readline()
        look.end()
        name = Path(f"/proc/{one.pid}/comm").read_text().strip()
        (found,) = [each for each in look.found((), SECOND, {one.pid: name}) if each.pid == one.pid]
        assert (found.process, found.on_cpu, found.cpus) == (f"{name} rates.py", 0, "")
        others = [look.found({one.pid}, SECOND, {one.pid: name}), look.found((), SECOND, {one.pid: "other"})]
        assert one.pid not in {each.pid for of in others for each in of}
        one.stdin.close()


def test_who_has_an_other_end_is_found_though_it_hardly_runs() -> None:
    code = "print(flush=True); input()"  # it has started when it prints
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdout and one.stdout.readline()
        look = Neighbours()
        look.end()
        assert one.pid not in {each.pid for each in look.found((), SECOND)}
        ends = {one.pid: "python rates.py", 1 << 30: "ended"}
        (found,) = [each for each in look.found((), SECOND, ends=ends) if each.process in ends.values()]
        assert (found.pid, found.process, found.on_cpu < SECOND // 10) == (one.pid, "python rates.py", True)
        assert one.pid not in {each.pid for each in look.found({one.pid}, SECOND, ends=ends)}
        assert one.stdin
        one.stdin.close()
