from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import procfs, scope
from stallscope.tracers.base.scope import Scope

GONE = 1 << 22
MOUNT = Path("/sys/fs/cgroup")
HIERARCHIES = [folder for folder in (MOUNT, *sorted(MOUNT.glob("*"))) if (folder / "cgroup.procs").is_file()]
"""The roots of cgroup v2 and of every v1 hierarchy of this machine."""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A sleeping process with an unusual argument, named ``sleep``."""
    made = subprocess.Popen(["sleep", "60", "0.07101"])
    while procfs.comm(made.pid) != "sleep":
        time.sleep(0.001)
    yield made
    made.kill()
    made.wait()


def test_processes_and_threads(child: subprocess.Popen[bytes]) -> None:
    made = Scope(pids=[child.pid], threads=[child.pid])
    assert (made.tgids, made.tids) == (set(), set())
    made.resolve()
    assert (made.tgids, made.tids) == ({child.pid}, {child.pid})
    assert not made.grows
    assert sorted(made.ends_with) == [child.pid, child.pid]


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        (Scope(pids=[GONE]), f"there is no process {GONE}"),
        (Scope(threads=[GONE]), f"there is no thread {GONE}"),
        (Scope(pids=[os.getpid(), GONE]), f"there is no process {GONE}"),
        (Scope(cgroup=Path("/no/such/group")), "/no/such/group is not a control group"),
        (Scope(cgroup=Path("/etc")), "/etc is not a control group"),
    ],
)  # fmt: skip
def test_what_is_not_there(asked: Scope, cause: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        asked.resolve()
    assert caught.value.cause == cause
    assert caught.value.remedy
    assert caught.value.exit_code == 1


def test_thread_given_as_process() -> None:
    ready, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (ready.set(), leave.wait()))
    thread.start()
    ready.wait()
    try:
        tid = thread.native_id
        assert tid is not None
        with pytest.raises(StallscopeError) as caught:
            Scope(pids=[tid]).resolve()
        assert caught.value.cause == f"{tid} is a thread of process {os.getpid()}"
        assert caught.value.remedy == f"trace the process with -p {os.getpid()}, the thread with -t {tid}"
        made = Scope(threads=[tid])
        made.resolve()
        assert (made.tgids, made.tids) == (set(), {tid})
    finally:
        leave.set()
        thread.join()


@pytest.mark.parametrize("pattern", [r"^sleep$", r"0\.0710[1]", r"^sleep 60 ", "SLEEP(?i:)|sl[e]ep"])
def test_name_or_command_line(pattern: str, child: subprocess.Popen[bytes]) -> None:
    made = Scope(name=re.compile(pattern))
    made.resolve()
    assert child.pid in made.tgids
    assert made.grows
    assert made.ends_with == []
    assert child.pid not in made.newcomers()
    later = subprocess.Popen(["sleep", "60", "0.07101"])
    try:
        while procfs.comm(later.pid) != "sleep":
            time.sleep(0.001)
        assert later.pid in made.newcomers()
    finally:
        later.kill()
        later.wait()


def test_name_that_nobody_has_yet() -> None:
    mark = f"nobody-is-called-{os.getpid()}"
    pattern = f"{mark[:-1]}[{mark[-1]}]$"
    made = Scope(name=re.compile(pattern))
    made.resolve()
    assert (made.tgids, made.waits) == (set(), True)
    with pytest.raises(StallscopeError) as caught:
        made.check_met()
    assert caught.value.cause == f"there was no process whose name or command line matches {pattern!r}"
    assert "ps -e" in caught.value.remedy
    later = subprocess.Popen(["sh", "-c", "sleep 60 & wait", mark])
    try:
        while not made.newcomers():
            time.sleep(0.001)
        assert not made.waits
    finally:
        (child,) = map(int, Path(f"/proc/{later.pid}/task/{later.pid}/children").read_text().split())
        for pid in (child, later.pid):
            os.kill(pid, 9)
        later.wait()
    while made.newcomers() & {child}:  # it may not have ended, or not have begun its program
        time.sleep(0.001)
    made.check_met()  # it was there


@pytest.mark.parametrize("also", [{"pids": [os.getpid()]}, {"threads": [os.getpid()]}, {"everything": True}])
def test_name_beside_others_is_not_waited_for(also: dict[str, object]) -> None:
    made = Scope(name=re.compile("nobody is called [t]his"), **also)  # type: ignore[arg-type]
    made.resolve()
    assert not made.waits
    made.check_met()


def test_we_ourselves_never_match() -> None:
    made = Scope(name=re.compile(""))
    made.resolve()
    assert os.getpid() not in made.tgids
    assert len(made.tgids) > 1
    assert not made.matches(os.getpid())
    assert not Scope().matches(1)


def test_who_called_us_does_not_match_by_our_own_command_line() -> None:
    """The name is in sudo's command line, too, in ``sudo trace-offcpu -n demo``."""
    code = (
        "import re, os; from stallscope.tracers.base.scope import Scope;"
        "print(Scope(name=re.compile('me_of_all[_]processes')).newcomers());"
        "print(Scope(name=re.compile('^python|^sh$')).newcomers() >= {os.getppid()})"
    )
    shell = ["sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, code, "me_of_all_processes"]
    result = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["set()", "True"]


@pytest.fixture(params=HIERARCHIES, ids=str)
def group(request: pytest.FixtureRequest, root: None) -> Iterator[Path]:
    """A control group with one below it."""
    made = request.param / f"stallscope-test-{os.getpid()}"
    (made / "below").mkdir(parents=True)
    if made.parent.name == "cpuset":  # nobody gets in before it has a core and memory
        for folder in (made, made / "below"):
            for name in ("cpuset.cpus", "cpuset.mems"):
                (folder / name).write_text((folder.parent / name).read_text())
    yield made
    (made / "below").rmdir()
    made.rmdir()


def test_control_group(group: Path, child: subprocess.Popen[bytes]) -> None:
    made = Scope(cgroup=group)
    made.resolve()  # an empty one may be filled later
    assert made.tgids == made.newcomers() == set()
    assert made.grows
    assert made.ends_with == []
    (group / "below" / "cgroup.procs").write_text(str(child.pid))
    try:
        assert made.newcomers() == {child.pid}
        for name in (f"/{group.name}", group.name, f"/{group.name}/below"):
            again = Scope(cgroup=Path(name))
            again.resolve()
            found = group / "below" if name.endswith("below") else group
            assert again.cgroup in {h / found.relative_to(group.parent) for h in HIERARCHIES}
            assert again.tgids == {child.pid}
    finally:
        child.kill()
        child.wait()
    assert made.newcomers() == set()


def test_control_group_that_goes_away(group: Path) -> None:
    (group / "gone").mkdir()
    made = Scope(cgroup=group / "gone")
    made.resolve()
    (group / "gone").rmdir()
    assert made.newcomers() == set()


def test_folder_that_only_looks_like_a_control_group(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("1\n")
    with pytest.raises(StallscopeError) as caught:
        Scope(cgroup=tmp_path).resolve()
    assert caught.value.cause == f"{tmp_path} is not a control group"


def test_tracer_in_the_group_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "g" / "below").mkdir(parents=True)
    (tmp_path / "g" / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")
    (tmp_path / "g" / "below" / "cgroup.procs").write_text("2\n3\n")
    (tmp_path / "g" / "loop").symlink_to(tmp_path / "g")
    monkeypatch.setattr(scope, "_CGROUP_MOUNT", tmp_path)
    monkeypatch.setattr(scope, "_CGROUP_FILE_SYSTEMS", (scope.file_system(tmp_path),))
    made = Scope(cgroup=Path("g"), ours={3})
    made.resolve()
    assert made.tgids == {1, 2}


def test_when_a_trace_ends() -> None:
    assert Scope(tgids={3}, tids={4}).ends_with == [3, 4]
    assert Scope(everything=True, tgids={3}).ends_with == []
    assert Scope(name=re.compile("x"), tgids={3}).ends_with == []
    assert Scope(cgroup=Path("/x"), tgids={3}).ends_with == []
    assert Scope().ends_with == []


@pytest.fixture
def family() -> Iterator[tuple[int, set[int]]]:
    """A shell, and its child and grandchild."""
    script = "sh -c 'sleep 60 & echo; wait' & wait"
    made = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    assert made.stdout
    made.stdout.readline()
    while "sleep" not in map(procfs.comm, procfs.descendants([made.pid])):
        time.sleep(0.001)
    yield made.pid, procfs.descendants([made.pid])
    os.killpg(made.pid, signal.SIGKILL)
    made.wait()
    made.stdout.close()


def test_what_was_forked_before_is_left_out_and_said(family: tuple[int, set[int]]) -> None:
    parent, kin = family
    assert len(kin) == 2
    made = Scope(pids=[parent])
    made.resolve()
    assert made.tgids == {parent}
    assert made.remarks() == [
        "2 processes (sh, sleep) that -p had forked before the trace: not traced; --children traces them, too"
    ]


def test_what_was_forked_before_can_be_traced(family: tuple[int, set[int]]) -> None:
    parent, kin = family
    made = Scope(pids=[parent], descendants=True)
    made.resolve()
    assert made.tgids == {parent, *kin}
    assert made.remarks() == []


def test_nothing_is_said_without_need(family: tuple[int, set[int]], child: subprocess.Popen[bytes]) -> None:
    parent, kin = family
    for scope_ in (Scope(pids=[parent], children=False), Scope(pids=[parent, *kin]), Scope(pids=[child.pid])):
        scope_.resolve()
        assert scope_.remarks() == []


def test_the_tracer_is_no_child_that_is_missed() -> None:
    made = Scope(pids=[os.getppid()], descendants=True)
    made.resolve()
    assert os.getpid() not in made.tgids


def shells(family: tuple[int, set[int]]) -> re.Pattern[str]:
    """Matches the outermost process of the family, and only that: by its whole command line."""
    return re.compile(f"^{re.escape(procfs.command_line(family[0]))}$")


def test_children_that_a_name_does_not_match_are_said(family: tuple[int, set[int]]) -> None:
    made = Scope(name=shells(family))
    made.resolve()
    assert made.tgids == {family[0]}
    assert made.remarks() == [
        "2 processes (sh, sleep) forked by what -n matches before it was traced, but not matched: not traced; "
        "--children traces them, too"
    ]
    assert made.remarks(traced=family[1]) == []


def test_children_that_a_name_does_not_match_can_be_traced(family: tuple[int, set[int]]) -> None:
    made = Scope(name=shells(family), descendants=True)
    made.resolve()
    assert made.tgids == {family[0], *family[1]}
    assert made.remarks() == []
    without = Scope(name=shells(family), children=False)
    without.resolve()
    assert (without.tgids, without.remarks()) == ({family[0]}, [])


def test_who_only_starts_the_command_that_matches_is_left_out() -> None:
    """A wrapper is left out as in ``timeout 60 train``. A shell whose command line has more than that matches."""
    wrapper = subprocess.Popen(["timeout", "60", "sleep", "50.07104"], start_new_session=True)
    shell = subprocess.Popen(["sh", "-c", "sleep 60 & wait", "50.07104"], start_new_session=True)
    try:
        for parent in (wrapper, shell):  # a fork that has not executed sleep yet has its parent's command line
            while not (child := procfs.children(parent.pid)) or procfs.command_line(child[0])[:5] != "sleep":
                time.sleep(0.001)
        made = Scope(name=re.compile("50[.]07104$"), children=False)
        made.resolve()
        assert made.tgids == {*procfs.children(wrapper.pid), shell.pid}
    finally:
        for process in (wrapper, shell):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_children_of_a_process_that_matches_later_are_said() -> None:
    made = Scope(name=re.compile("0[.]07103$"))
    made.resolve()
    assert made.waits
    later = subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo; wait", "0.07103"], stdout=subprocess.PIPE, start_new_session=True
    )
    assert later.stdout
    try:
        later.stdout.readline()
        # A fork that has not executed sleep yet still has the shell's command line.
        while len(made.newcomers() | {later.pid}) != 1:
            time.sleep(0.001)
        assert not made.waits
        (remark,) = made.remarks()
        assert remark.startswith("1 process (sleep) forked by what -n matches")
    finally:
        os.killpg(later.pid, signal.SIGKILL)
        later.wait()
        later.stdout.close()


def test_which_children_have_run(family: tuple[int, set[int]]) -> None:
    made = Scope(pids=[family[0]])
    made.resolve()
    assert made.busy_left_out() == set()
    (sleeper,) = (pid for pid in family[1] if procfs.comm(pid) == "sleep")
    os.kill(sleeper, signal.SIGKILL)  # it runs to its end, and so does the shell that waits for it
    while procfs.command_line(sleeper):
        time.sleep(0.001)
    assert sleeper in made.busy_left_out()


def test_what_is_said_if_the_kernel_shows_no_thread() -> None:
    assert "they have ended" in Scope(tgids={2**22 + 1}).untraceable().cause
    hidden = Scope(tgids={os.getpid()}).untraceable()
    assert f"the kernel hides {os.getpid()} from tracers" in hidden.cause
    assert "-n REGEX" in hidden.remedy
    assert "the kernel hides them" in Scope(tgids={1, os.getpid()}).untraceable().cause
