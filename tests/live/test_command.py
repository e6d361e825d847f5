"""Messages of a command that is used wrongly, or where it cannot work: cause, then remedy, and never a traceback."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from commands import NOBODY, TRACE_OFFCPU, Tracer, environment, run

WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
# Reads everything, so that it can run this program wherever that is, and may do nothing else.
OTHER_USER = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all,+dac_read_search"),
    *("--ambient-caps=-all,+dac_read_search", "--bounding-set=-all,+dac_read_search"),
)


def free_pid() -> int:
    """The id of a process that has just ended."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_no_scope_shows_examples() -> None:
    finished = run()
    assert finished.status == 2
    lines = finished.err.splitlines()
    assert lines[0] == "trace-offcpu: say what to trace: -p PID, -t TID, -n REGEX, --cgroup PATH, -a, or -- COMMAND"
    assert len([line for line in lines if "trace-offcpu" in line and "#" in line]) == 3
    assert finished.out == ""


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["-p", "x"], "'x' is not a number"),
        (["-p", "0"], "0 is not between 1 and 4194304"),
        (["-p", "1,-2"], "'-2' is not a number"),
        (["-p", "١"], "'١' is not a number"),
        (["-n", "("], "'(' is not a regular expression"),
        (["-a", "-p", "1"], "-a is everything"),
        (["-a", "--", "true"], "either a COMMAND or processes"),
        (["-a", "-d", "0"], "0 is not a time above 0 seconds"),
        (["-a", "-d", "nan"], "nan is not a time above 0 seconds"),
        (["-a", "-U", "-K"], "give at most one of them"),
        (["-a", "--state", "waiting"], "'waiting' is not one of"),
        (["-a", "--min-block", "-1"], "-1 us is not a waiting time"),
        (["-a", "--min-block", "x"], "'x' is not a valid float"),
        (["-a", "--buffer", "3"], "'3' is not one of"),
        (["-a", "--table-size", "1023"], "1023 is not in the range"),
        (["-a", "-o", "out.png"], "out.png has a suffix that stands for no format"),
        (["-a", "-o", ""], "an empty path has a suffix that stands for no format"),
        (["-a", "-o", "\x1b[31m.png"], "\\x1b[31m.png has a suffix"),
        (["-a", "-o", "a.svg", "-o", "./a.svg"], "the output ./a.svg is given twice"),
        (["-a", "-o", "-", "-o", "-"], "the output - is given twice"),
        (["-a", "--no-such-option"], "No such option"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], cause: str) -> None:
    said, _ = run(*arguments, cwd=tmp_path).check_failed(2)
    assert cause in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("live")
class TestWhatIsNotThere:
    def test_process(self, tmp_path: Path) -> None:
        pid = free_pid()
        for scope in (str(pid), f"{os.getpid()},{pid}"):
            cause, remedy = run("-p", scope, "-o", tmp_path / "out.svg").check_failed()
            assert cause == f"there is no process {pid}"
            assert "ps -e" in remedy
        assert list(tmp_path.iterdir()) == []

    def test_thread(self) -> None:
        tid = free_pid()
        cause, remedy = run("-t", tid, "-o", "-").check_failed()
        assert cause == f"there is no thread {tid}"
        assert "ps -eL" in remedy

    def test_control_group(self, tmp_path: Path) -> None:
        (tmp_path / "like").mkdir()
        (tmp_path / "like" / "cgroup.procs").write_text(f"{os.getpid()}\n")
        for path in (tmp_path, tmp_path / "no", "no/such/group", tmp_path / "like"):
            cause, remedy = run("--cgroup", path, "-o", "-").check_failed()
            assert cause == f"{path} is not a control group"
            assert "/sys/fs/cgroup" in remedy

    def test_type_information(self, tmp_path: Path) -> None:
        cause, remedy = run("--btf", "/no/such", "-a", "-d", 1, "-o", "-").check_failed()
        assert cause == "/no/such is not a file"
        assert "BTF" in remedy

    @pytest.mark.parametrize("content", [b"", b"text", os.urandom(5000), b"\x9f\xeb\x01\x00" + bytes(20)])
    def test_type_information_that_is_none(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "kernel.btf"
        path.write_bytes(content)
        _, remedy = run("--btf", path, "-a", "-d", 1, "-o", tmp_path / "out.svg").check_failed()
        assert "--btf" in remedy
        assert list(tmp_path.iterdir()) == [path]

    def test_truncated_type_information(self, tmp_path: Path) -> None:
        kernel = Path("/sys/kernel/btf/vmlinux").read_bytes()
        path = tmp_path / "kernel.btf"
        path.write_bytes(kernel[: len(kernel) // 2])
        _, remedy = run("--btf", path, "-a", "-d", 1, "-o", "-").check_failed()
        assert "--btf" in remedy

    def test_folder_of_an_output(self, tmp_path: Path) -> None:
        marker = tmp_path / "marker"
        cause, remedy = run("-o", tmp_path / "no" / "out.svg", "--", "touch", marker).check_failed()
        assert cause == f"the folder {tmp_path / 'no'} cannot be used: No such file or directory"
        assert remedy == "create it, or choose another one"
        assert not marker.exists()


@pytest.mark.usefixtures("live")
def test_external_type_information(tmp_path: Path) -> None:
    """Raw tracepoints do the same job where the kernel carries no type information."""
    finished = run("--btf", "/sys/kernel/btf/vmlinux", "-o", tmp_path / "out.folded", "--", "sleep", 0.2)
    finished.check_succeeded()
    assert "do_nanosleep_[k]" in (tmp_path / "out.folded").read_text()


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize(
    ("prefix", "cause"),
    [
        (OTHER_USER, "tracing needs root, or CAP_BPF and CAP_PERFMON: this user lacks CAP_BPF and CAP_PERFMON"),
        (
            WITHOUT_CAPABILITIES,
            "tracing needs CAP_SYS_ADMIN (or CAP_BPF and CAP_PERFMON): this root lacks CAP_BPF and CAP_PERFMON",
        ),
    ],
    ids=["other user", "root without capabilities"],
)
@pytest.mark.parametrize("scope", [["-a"], ["--", "touch", "marker"]], ids=["all", "command"])
def test_without_privileges(tmp_path: Path, prefix: tuple[str, ...], cause: str, scope: list[str]) -> None:
    said, remedy = run("-d", 1, "-o", "-", *scope, prefix=prefix, cwd=tmp_path).check_failed()
    assert said == cause
    assert "`sudo trace-offcpu …`" in remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("live")
class TestOpenFiles:
    """The limit of open files is raised as far as it may be; where that is too little, it is named with its remedy."""

    @staticmethod
    def limited(soft: int, hard: int) -> tuple[str, ...]:
        return ("prlimit", f"--nofile={soft}:{hard}", "--")

    @pytest.mark.parametrize("most", [20, 64])
    def test_too_few(self, tmp_path: Path, most: int) -> None:
        path = tmp_path / "out.svg"
        cause, remedy = run("-a", "-d", 1, "-o", path, prefix=self.limited(most, most)).check_failed()
        assert re.fullmatch(rf"only {most} files may be open at a time, and tracing needs \d+", cause)
        assert "`ulimit -n 65536`" in remedy
        assert not path.exists()

    def test_enough_for_the_probes_and_not_for_the_files(self, tmp_path: Path) -> None:
        cause, _ = run("-a", "-d", 1, "-o", "-", prefix=self.limited(64, 64)).check_failed()
        most = int(cause.split()[-1]) + 6
        finished = run("-a", "-d", 1, "-o", tmp_path / "out.svg", prefix=self.limited(most, most)).check_succeeded()
        assert re.search(rf"only {most} files may be open at a time, and [\d,]+ more were needed", finished.out)

    def test_soft_limit_is_raised(self, tmp_path: Path) -> None:
        options = ("-d", 1, "-o", tmp_path / "out.svg")
        finished = run("-a", *options, prefix=self.limited(64, 4096)).check_succeeded()
        assert "files may be open" not in finished.out


@pytest.mark.usefixtures("live")
def test_doctor() -> None:
    """The doctor's exit status says whether trace-offcpu can run."""
    command = [str(Path(TRACE_OFFCPU).with_name("trace-doctor"))]
    able = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert able.returncode == 0, able.stdout
    assert (
        able.stdout.splitlines()[-1]
        == "trace-offcpu, trace-oncpu, trace-wall, trace-wakeup, trace-ioctl, trace-cuda, trace-func, trace-nccl and "
        "trace-scan can run here"
    )
    unable = subprocess.run([*OTHER_USER, *command], capture_output=True, text=True, env=environment(), check=False)
    assert unable.returncode == 1
    assert "Traceback" not in unable.stderr
    assert re.search(r"^FAIL +privilege: .*\n +mend: sudo trace-doctor", unable.stdout, re.MULTILINE)


@pytest.mark.usefixtures("live")
def test_progress_is_for_terminals(tmp_path: Path) -> None:
    with Tracer("-o", tmp_path / "a.svg", "--", "sleep", 1) as tracer:
        shown = tracer.finish().check_succeeded()
    assert re.search(
        r"\r\x1b\[Ktracing \d\.\d s \(Ctrl-C ends it\), 0 lost intervals, 1 thread, \d+ stacks?", shown.tty
    )
    assert shown.tty.endswith("\r\x1b[K")
    assert shown.err == ""
    dumb = run("-o", tmp_path / "b.svg", "--", "sleep", 0.3, TERM="dumb").check_succeeded()
    assert dumb.tty == ""
    command = [TRACE_OFFCPU, "-o", str(tmp_path / "c.svg"), "--", "sleep", "0.3"]
    piped = subprocess.run(command, capture_output=True, env=environment(), check=True)
    assert piped.stderr == b""
    assert b"\x1b" not in piped.stdout
    assert b"\r" not in piped.stdout


@pytest.mark.usefixtures("live")
def test_reader_that_goes_away(tmp_path: Path) -> None:
    """`trace-offcpu … | head -0`: no complaint, and the other outputs are there."""
    path = tmp_path / "out.svg"
    reader, writer = os.pipe()
    os.close(reader)
    command = [TRACE_OFFCPU, "-o", "-", "-o", str(path), "--", "sleep", "0.1"]
    piped = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment(), check=False)
    os.close(writer)
    assert "Traceback" not in piped.stderr
    assert "error" not in piped.stderr.lower()
    assert path.exists()
