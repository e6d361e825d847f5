from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base.interrupts import Interrupts
from stallscope.tracers.base.launch import Launch, ending, shell_status

SCRIPT = "import sys; from stallscope.tracers.base.launch import Launch; made = Launch(sys.argv[1:]); made.go(); "


def run_as(environment: dict[str, str], *command: str, groups: list[int] | None = None) -> list[str]:
    """Lines that a command writes which a tracer with these variables (and supplementary groups) starts."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    result = subprocess.run(
        [sys.executable, "-c", f"{SCRIPT} sys.exit(made.wait())", *command],
        env={**clean, **environment},
        extra_groups=groups,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return result.stdout.splitlines()


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9), ("kill -TERM $$", -15), ("exit 255", 255)],
)
def test_exit_status(command: str, status: int) -> None:
    made = Launch(["sh", "-c", command])
    assert made.poll() is None
    made.go()
    assert made.wait() == made.wait() == made.poll() == status
    made.stop()


def test_time_on_cores_of_a_command_and_what_it_has_waited_for() -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    made = Launch([sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"])
    assert made.cpu_time is None
    made.go()
    assert made.wait() == 0
    assert made.cpu_time
    assert made.cpu_time >= 200_000_000


@pytest.mark.parametrize(
    ("status", "words", "as_shell"),
    [
        (3, "the command ended with status 3", 3),
        (-11, "the command was ended by SIGSEGV", 139),
        (139, "the command ended with status 139 (128 + SIGSEGV)", 139),
        (-35, "the command was ended by signal 35", 163),
        (128, "the command ended with status 128", 128),
        (255, "the command ended with status 255", 255),
    ],
)
def test_end_in_words(status: int, words: str, as_shell: int) -> None:
    assert ending(status) == words
    assert shell_status(status) == as_shell


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no-such-command", "No such file or directory"),
        ("/etc/passwd", "Permission denied"),
        ("/etc", "Permission denied"),
        ("/etc/passwd/x", "Not a directory"),
        ("x\x1b[2J", "No such file or directory"),
    ],
)
def test_command_that_cannot_run(name: str, reason: str) -> None:
    made = Launch([name, "argument"])
    with pytest.raises(StallscopeError) as caught:
        made.go()
    assert caught.value.cause == f"cannot run {name!r}: {reason}"
    assert caught.value.remedy
    assert made.poll() == 127
    made.stop()


def test_nothing_happens_before_go(tmp_path: Path) -> None:
    made = Launch(["touch", str(tmp_path / "touched")])
    time.sleep(0.1)
    assert not (tmp_path / "touched").exists()
    made.stop()
    assert made.wait() in (127, -signal.SIGTERM)
    assert not (tmp_path / "touched").exists()


def test_tracer_that_dies_takes_the_command_with_it(tmp_path: Path) -> None:
    code = (
        "import os, sys; from stallscope.tracers.base.launch import Launch; made = Launch(sys.argv[1:]);"
        "print(made.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    tracer = subprocess.run(
        [sys.executable, "-c", code, "touch", str(tmp_path / "touched")], stdout=subprocess.PIPE, text=True
    )
    assert tracer.returncode == -signal.SIGKILL
    stat = Path("/proc", tracer.stdout.strip(), "stat")
    while stat.exists() and ") Z " not in stat.read_text():  # nobody may be there to reap it
        time.sleep(0.005)
    assert not (tmp_path / "touched").exists()


def test_stop_ends_a_running_command() -> None:
    made = Launch(["sleep", "60"])
    made.go()
    assert made.poll() is None
    made.stop()
    assert made.wait() == -signal.SIGTERM
    made.stop()


def test_command_that_ended_at_the_gate_is_no_error() -> None:
    made = Launch(["sleep", "60"])
    os.kill(made.pid, signal.SIGKILL)
    os.waitid(os.P_PID, made.pid, os.WEXITED | os.WNOWAIT)
    made.go()
    assert made.poll() == -signal.SIGKILL


def test_no_descriptor_but_the_standard_ones_is_handed_down(tmp_path: Path) -> None:
    passed_on = {fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and is_inheritable(fd)}
    code = "import os; held = [fd for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd)]"
    code += f"; open('{tmp_path}/fds', 'w').write(' '.join(held))"
    with open(tmp_path / "open", "w") as kept:
        assert kept.fileno() > 2
        made = Launch([sys.executable, "-c", code])
        made.go()
        assert made.wait() == 0
    assert set(map(int, (tmp_path / "fds").read_text().split())) - passed_on <= {0, 1, 2}


def is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:  # the one that listed them
        return False


def test_standard_output_is_left_to_others_on_demand() -> None:
    code = "import sys; from stallscope.tracers.base.launch import Launch; made = Launch(['echo', 'x'], quiet=True);"
    code += "made.go(); made.wait()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "x\n")


def test_signals_are_as_the_command_expects_them(tmp_path: Path) -> None:
    (ignored,) = run_as({}, "grep", "SigIgn", "/proc/self/status")
    bits = int(ignored.split()[1], 16)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        assert not bits & 1 << (number - 1), number


def test_exit_status_is_known_even_where_sigchld_was_ignored() -> None:
    code = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); {SCRIPT} print(made.wait())"
    result = subprocess.run([sys.executable, "-c", code, "false"], capture_output=True, text=True, check=True)
    assert result.stdout == "1\n"


WHO = ("sh", "-c", 'id -u; id -g; id -G; echo "$HOME $USER $LOGNAME"')


def test_command_runs_as_the_user_behind_sudo(root: None) -> None:
    user = pwd.getpwnam("nobody")
    uid, gid = str(user.pw_uid), str(user.pw_gid)
    lines = run_as({"SUDO_UID": uid, "SUDO_GID": gid, "HOME": "/root"}, *WHO, groups=[54320])
    assert lines == [uid, gid, gid, f"{user.pw_dir} nobody nobody"]


def test_user_without_an_entry_is_still_not_root(root: None) -> None:
    lines = run_as(
        {"SUDO_UID": "54321", "SUDO_GID": "54322", "HOME": "/somewhere", "USER": "x", "LOGNAME": "y"},
        *WHO,
        groups=[54320],
    )
    assert lines == ["54321", "54322", "54322", "/somewhere x y"]


@pytest.mark.parametrize("environment", [{}, {"SUDO_UID": "0"}, {"SUDO_UID": "²"}, {"SUDO_UID": ""}])
def test_without_sudo_the_user_stays(environment: dict[str, str]) -> None:
    lines = run_as({**environment, "HOME": "/somewhere"}, *WHO)
    assert lines[:2] == [str(os.geteuid()), str(os.getegid())]
    assert lines[3].startswith("/somewhere ")


def test_user_that_cannot_be_become_is_an_error(root: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "54321")
    monkeypatch.delenv("SUDO_GID", raising=False)
    made = Launch(["touch", "/nowhere"])
    with pytest.raises(StallscopeError, match="cannot run 'touch': ValueError"):
        made.go()


def test_ctrl_c_before_it_begins_is_not_for_it(tmp_path: Path) -> None:
    """Ctrl-C means the tracer, which goes on; from its first instruction on it is as for any command."""
    with Interrupts():  # whose handlers the child inherits
        made = Launch(["sh", "-c", f"echo began > {tmp_path}/out; kill -INT $$; echo lived >> {tmp_path}/out"])
        assert made.command[0] == "sh"
        while not Path(f"/proc/{made.pid}/wchan").read_text().startswith(("pipe", "anon_pipe")):
            time.sleep(0.001)
        for _ in range(3):
            os.kill(made.pid, signal.SIGINT)
            while "ShdPnd:\t0000000000000000" not in Path(f"/proc/{made.pid}/status").read_text():
                time.sleep(0.001)
            time.sleep(0.05)  # a handler of Python's would run now
        made.go()
        assert made.wait() == -signal.SIGINT
    assert (tmp_path / "out").read_text() == "began\n"


def test_sigterm_before_it_begins_ends_it() -> None:
    with Interrupts() as interrupts:
        made = Launch(["sleep", "60"])
        while not Path(f"/proc/{made.pid}/wchan").read_text().startswith(("pipe", "anon_pipe")):
            time.sleep(0.001)
        os.kill(made.pid, signal.SIGTERM)
        assert made.wait() == -signal.SIGTERM
        assert not interrupts.requested


def test_only_its_parent_knows_the_status() -> None:
    launch = Launch(["true"])
    launch.go()
    child = os.fork()
    if not child:
        os._exit(int(launch.poll() is not None))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert launch.wait() == 0
