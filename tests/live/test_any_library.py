"""Functions of any library: what the kernel takes no probe on, and what else can be wrong with a library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Finished, Tracer, load, run
from runner import FOLDER, Workload
from stallscope.tracers.kernel.uprobes import Way, best_way

pytestmark = pytest.mark.usefixtures("live")

TRACE_CUDA = str(Path(sys.executable).with_name("trace-cuda"))
LIBRARY = """
__attribute__((visibility("hidden"))) int counter;
__attribute__((noinline)) int first(int x) { return x + 1; }
__attribute__((naked)) int locked(void) { __asm__("lock incl counter(%rip); ret"); }
__attribute__((naked)) int also_locked(void) { __asm__("lock decl counter(%rip); ret"); }
__attribute__((noinline)) int last(int x) { return x + 2; }
int _setjmp(void *x) { return x != 0; }
"""
PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
int first(int x), locked(void), also_locked(void), last(int x);
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 100; i++) { sum += first(i); locked(); also_locked(); sum += last(i); }
    if (argc > 1) sleep(60);
    return sum == 0;
}
"""


@pytest.fixture
def gcc(require: Callable[[bool, str], None]) -> str:
    found = shutil.which("gcc")
    require(found is not None, "there is no gcc")
    return str(found)


@pytest.fixture
def folder(gcc: str, tmp_path: Path) -> Path:
    """A library with functions of all kinds, and a program that calls each 100 times."""
    folder = tmp_path / "any"
    folder.mkdir()
    (folder / "x.c").write_text(LIBRARY)
    (folder / "main.c").write_text(PROGRAM)
    subprocess.run([gcc, "-w", "-O1", "-shared", "-fPIC", "-o", folder / "libany.so", folder / "x.c"], check=True)
    subprocess.run(
        [gcc, "-o", folder / "main", folder / "main.c", "-L", folder, "-lany", f"-Wl,-rpath,{folder}"], check=True
    )
    return folder


BITS_32 = """
.code32
.globl _start
.type _start, @function
_start: movl $162, %eax
     movl $request, %ebx
     xorl %ecx, %ecx
     int $0x80
     jmp _start
.data
request: .long 0, 1000000
"""


def counted(done: Finished, profile: Path) -> dict[str, int]:
    done.check_succeeded()
    return {call.name: call.count for call in load(profile).calls}


def test_what_the_kernel_refuses_is_left_out(folder: Path, tmp_path: Path) -> None:
    """Checks that what is left out is told, and that all others have probes."""
    out = tmp_path / "x.pb.gz"
    done = run("-o", out, "--lib", folder / "libany.so", "--sym", ".*", "--", folder / "main", command=TRACE_CUDA)
    found = counted(done, out)
    assert {name: found.get(name) for name in ("first", "last", "locked", "also_locked", "_setjmp")} == {
        "first": 100, "last": 100, "locked": None, "also_locked": None, "_setjmp": None
    }  # fmt: skip
    (line,) = [line for line in done.out.splitlines() if "left out" in line]
    assert "2 functions with a first instruction that the kernel takes no probe on: " in line
    assert "locked" in line
    assert "1 function that a probe on the return could end the program of: _setjmp" in line


@pytest.mark.parametrize("way", Way)
def test_in_every_way(
    way: Way, folder: Path, require: Callable[[bool, str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    require(way.attach_type <= best_way().attach_type, f"the kernel has no {way.title}")
    script = f"""
import sys
from stallscope.tracers.kernel import uprobes
from stallscope.tracers.engines.ebpf.measures import calls
calls.best_way = lambda: uprobes.Way.{way.name}
from stallscope.tracers.cuda import main
sys.exit(main(sys.argv[1:]))
"""
    out = tmp_path / "x.pb.gz"
    options = ["-o", out, "--lib", folder / "libany.so", "--sym", ".*", "--", folder / "main"]
    done = run("-c", script, *options, command=sys.executable)
    found = counted(done, out)
    assert (found.get("first"), found.get("last"), found.get("locked")) == (100, 100, None)


def test_all_of_the_c_library(gcc: str, folder: Path, tmp_path: Path) -> None:
    """A copy of it: a probe stops every process that has the file mapped."""
    libc = next(
        Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line
    )
    shutil.copy(libc, tmp_path / "libc.so.6")
    (tmp_path / "main.c").write_text(
        "#include <stdlib.h>\n#include <unistd.h>\n"
        'int main(void) { for (int i = 0; i < 50; i++) { usleep(100); getenv("X"); } return 0; }'
    )
    subprocess.run([gcc, "-O1", "-o", tmp_path / "main", tmp_path / "main.c"], check=True)
    out = tmp_path / "x.pb.gz"
    command = "env", f"LD_LIBRARY_PATH={tmp_path}", tmp_path / "main"
    done = run("-o", out, "--lib", tmp_path / "libc.so.6", "--sym", ".*", "--", *command, command=TRACE_CUDA)
    found = counted(done, out)
    assert found["usleep"] == found["getenv"] == 50
    assert "left out" in done.out
    assert "was not traced" not in done.out


def test_a_library_that_was_deleted(tmp_path: Path) -> None:
    """A process goes on with the file that it has mapped, as after an update."""
    for name in ("cuda_calls", "libcudart.so.12", "libcuda.so.1"):
        shutil.copy(FOLDER / name, tmp_path / name)
    with Workload(str(tmp_path / "cuda_calls"), "plain", 1, 20) as workload:
        for name in ("libcudart.so.12", "libcuda.so.1"):
            (tmp_path / name).unlink()
        with Tracer("-o", tmp_path / "x.pb.gz", "-p", workload.pids[0], command=TRACE_CUDA) as tracer:
            tracer.ready()
            workload.release()
            found = counted(tracer.finish(), tmp_path / "x.pb.gz")
    assert found["cudaMalloc"] == 20


def test_a_program_of_32_bits(tmp_path: Path, require: Callable[[bool, str], None]) -> None:
    require(all(map(shutil.which, ("as", "ld"))), "there is no assembler and linker")
    (tmp_path / "bits.s").write_text(BITS_32)
    subprocess.run(["as", "--32", "-o", tmp_path / "bits.o", tmp_path / "bits.s"], check=True)
    subprocess.run(["ld", "-m", "elf_i386", "-o", tmp_path / "bits", tmp_path / "bits.o"], check=True)
    with subprocess.Popen([tmp_path / "bits"]) as child:
        time.sleep(0.2)
        try:
            require(child.poll() is None, "the kernel runs no 32-bit programs")
            done = run("-o", tmp_path / "x.svg", "-d", 0.5, "-p", child.pid, command=TRACE_CUDA).check_succeeded()
        finally:
            child.kill()
    assert "Note: 32-bit programs are not traced: bits\n" in done.out
    wrong = run("-o", tmp_path / "x.svg", "-d", 0.5, "--lib", tmp_path / "bits", "--sym", "_", "-a", command=TRACE_CUDA)
    assert wrong.status == 2
    assert f"{tmp_path}/bits is 32-bit code, which is not traced\n" in wrong.err


@pytest.mark.parametrize(
    ("symbols", "says"),
    [
        ("^frist$", "has no function that '^frist$' matches\nit has first"),
        ("setjmp", "a probe on the return of _setjmp could end the program"),
    ],
)
def test_symbols_that_cannot_be(folder: Path, tmp_path: Path, symbols: str, says: str) -> None:
    library = folder / "libany.so"
    done = run("-o", tmp_path / "x.svg", "--lib", library, "--sym", symbols, "-a", "-d", 1, command=TRACE_CUDA)
    assert done.status == 2
    assert says in done.err.replace("\r\n", "\n")
    assert len(done.err.strip().splitlines()) == 2


NAPS = """
#include <unistd.h>
__attribute__((noinline)) int nap(int x) { usleep(1300000); return x + 1; }
"""
NAPPER = """
int nap(int x);
int main(void) { return nap(1) + nap(2) == 0; }
"""


def test_waits_in_a_call_that_goes_on_over_intervals(gcc: str, tmp_path: Path) -> None:
    (tmp_path / "naps.c").write_text(NAPS)
    (tmp_path / "napper.c").write_text(NAPPER)
    library, program = tmp_path / "libnaps.so", tmp_path / "napper"
    subprocess.run([gcc, "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "naps.c"], check=True)
    subprocess.run([gcc, "-O1", "-o", program, tmp_path / "napper.c", library], check=True)
    out = tmp_path / "out"
    out.mkdir()
    names = out / "%Y%m%d-%H%M%S.pb.gz"
    run("--every", "1s", "-o", names, "--lib", library, "--sym", "^nap$", "--", program, command=TRACE_CUDA)
    found = [load(path) for path in sorted(out.iterdir())]
    assert len(found) >= 2
    (first, *more) = [call for profile in found for call in profile.calls]
    times = [sum(getattr(call, name) for call in (first, *more)) for name in ("total", "blocked", "runnable")]
    assert times[0] >= 2_600_000_000
    # All of it is a sleep: what is not blocked is the way in and out, and the wait for a core.
    assert times[0] - times[1] - times[2] <= 0.02 * times[0], times
    rows = Counter[bool]()
    for profile in found:
        column = profile.index("calls")
        for sample in profile.samples:
            rows[sample.label("state") == "running"] += sample.values[column]
    assert rows[True] <= 0.02 * times[0], rows
    assert sum(rows.values()) == pytest.approx(times[0], rel=0.02)


EXECS = """
#include <unistd.h>
__attribute__((noinline)) int run_again(char **argv) { return execv(argv[0], argv) + 1; }
"""
AGAIN = """
#include <unistd.h>
int run_again(char **argv);
int main(int argc, char **argv) {
    if (--*argv[1] >= '0') return run_again(argv);
    return usleep(300000);
}
"""


def test_a_call_ends_when_its_thread_executes_another_program(gcc: str, tmp_path: Path) -> None:
    (tmp_path / "execs.c").write_text(EXECS)
    (tmp_path / "again.c").write_text(AGAIN)
    library, program = tmp_path / "libexecs.so", tmp_path / "again"
    subprocess.run([gcc, "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "execs.c"], check=True)
    subprocess.run([gcc, "-O1", "-o", program, tmp_path / "again.c", library], check=True)
    out = tmp_path / "x.pb.gz"
    run("-o", out, "--lib", library, "--sym", "^run_again$", "--", program, "5", command=TRACE_CUDA)
    found = Counter[str]()
    for call in load(out).calls:
        assert (call.name, call.count, call.open_count) == ("run_again", 0, 0)
        found.update(call.errors)
    assert found == {"left without a return": 5}


GO = """package main

import ("bytes"; "fmt"; "strings")

func main() {
	n := 0
	for i := 0; i < 2000; i++ { n += bytes.Count([]byte(strings.Repeat("ab", i%50)), []byte("b")) }
	fmt.Println("ok", n)
}
"""


def test_programs_made_by_go_are_left_alone(require: Callable[[bool, str], None], tmp_path: Path) -> None:
    """A return probe in code that moves its stack ends the program."""
    require(shutil.which("go") is not None, "there is no go (package golang-go)")
    (tmp_path / "program.go").write_text(GO)
    program = tmp_path / "made_by_go"
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "GOFLAGS": "-p=1", "GO111MODULE": "off"}
    subprocess.run(["go", "build", "-o", program, tmp_path / "program.go"], check=True, env=environment)
    refused = run("--lib", str(program), "--sym", ".", "--", str(program), command=TRACE_CUDA)
    assert refused.status == 2
    assert "made_by_go, and a probe on the return of a function could end the program" in refused.err
    by_name = run("--lib", "made_by_go", "--sym", ".", "--", str(program), command=TRACE_CUDA)
    assert "ok 49000" in by_name.out + by_name.err, by_name.err
    assert by_name.status == 0, by_name.err
    assert "Go made it" in by_name.out


FIRST = """
#include <sys/ioctl.h>
#include <time.h>
__attribute__((noinline)) static int deep(int terminal) {
    struct timespec pause = {0, 200000000};
    int sizes[4];
    return nanosleep(&pause, 0) + ioctl(terminal, 0x5413, sizes);
}
__attribute__((noinline)) int inner_call(int terminal) { return deep(terminal) + 1; }
int outer_call(int terminal) { return inner_call(terminal) + 1; }
"""
AT_ONCE = """
int outer_call(int terminal);
int main(void) { return outer_call(0) == 77; }
"""


def test_the_first_call_of_a_command_has_its_function(gcc: str, tmp_path: Path) -> None:
    """The call begins before the mappings of the program are known, so that a walk ends in the first frame."""
    (tmp_path / "first.c").write_text(FIRST)
    (tmp_path / "at_once.c").write_text(AT_ONCE)
    library, program, out = tmp_path / "libfirst.so", tmp_path / "at_once", tmp_path / "x.pb.gz"
    flags = "-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"
    subprocess.run([gcc, *flags, "-shared", "-fPIC", "-o", library, tmp_path / "first.c"], check=True)
    subprocess.run([gcc, *flags, "-o", program, tmp_path / "at_once.c", library], check=True)
    done = run("-o", out, "--lib", library, "--sym", "_call$", "--", program, command=TRACE_CUDA).check_succeeded()
    profile = load(out)
    for sample in profile.samples:
        assert any(frame.kind == "api" and frame.module for frame in sample.stack), sample
    (outer,) = [call for call in profile.calls if call.name == "outer_call"]
    (thread,) = profile.threads
    assert outer.total > 200_000_000
    told = (
        f"{100 * outer.total / thread.wall:.1f} % of the time of 1 calling thread of at_once is in outer_call (1 call, "
    )
    assert done.out.splitlines()[0].startswith(told)
