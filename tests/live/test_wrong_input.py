"""Each wrong input of trace-func has its one line, what can be done about it, and its exit status."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.base import capabilities
from stallscope.tracers.bcc_compiler import compiler, place
from stallscope.tracers.func import main

pytestmark = pytest.mark.usefixtures("live", "in_folder")

SOURCE = """
struct item { long size; double weight; };
__attribute__((noinline, used)) long take(struct item *item, long n) { return item->size + n; }
static inline __attribute__((always_inline)) long small(long n) { return n + 1; }
int main(int argc, char **argv) { struct item item = {argc, 0}; return take(&item, small(argc)) == 1234; }
"""
NO_PID = str(4_194_303)
WHERE = "--where"

Case = tuple[list[str], int, str]
"""Arguments (with the names of files of `files`), the exit status, and what the first line says."""

TARGETS: dict[str, Case] = {
    "no target": (["-a"], 2, "say which functions to trace"),
    "no function": (["{asked}", "-a"], 2, "is not FILE:FUNCTION"),
    "no such file": (["/no/such/file:f", "-a"], 2, "there is no file /no/such/file"),
    "no such function": (["{asked}:tak", "-a"], 2, "has no function for"),
    "a pattern that matches nothing": (["{asked}:x*y", "-a"], 2, "has no function for"),
    "a bad expression for names": (["{asked}:re:(", "-a"], 2, "has no regular expression"),
    "an inlined function": (["{asked}:small", "-a"], 2, "has no function for"),
    "a stripped program": (["{stripped}:take", "-a"], 2, "has no function for"),
    "no program": (["{text}:take", "-a"], 2, "{text}: "),
    "a damaged program": (["{cut}:take", "-a"], 2, "{cut}: "),
    "a program for another processor": (["{other}:take", "-a"], 2, "its code is not that of 64-bit x86"),
    "a function that returns twice": (["libc.so.6:f", "{libc}:_setjmp", "-a"], 2, "could end the program"),
    "too many functions": (["{many}:f*", "-a"], 2, "17,000 functions match"),
    "no scope": (["{asked}:take"], 2, "say what to trace"),
    "a process that is gone": (["{asked}:take", "-p", NO_PID, "-o", "x.svg"], 1, "process 4194303"),
    "a library that nobody maps": (["libnosuch.so.1:f", "--list"], 1, "no file of that name"),
    "a list as data": (["{asked}:take", "--list", "--json"], 2, "--list prints text"),
}
QUESTIONS: dict[str, Case] = {
    "an unknown name": ([WHERE, "nn > 1"], 2, "--where: 'nn' is not known"),
    "an expression that does not end": ([WHERE, "arg1 >"], 2, "--where: a value is expected here"),
    "a parenthesis too many": ([WHERE, "arg1)"], 2, "--where: the expression has ended before this"),
    "an assignment": ([WHERE, "arg1 = 1"], 2, "--where: '==' compares"),
    "code": ([WHERE, "1; system(1)"], 2, "--where: ';' is not a part"),
    "a call": ([WHERE, "f(arg1)"], 2, "--where: functions are not called"),
    "a fraction": ([WHERE, "arg1 > 1.5"], 2, "--where: only whole numbers"),
    "a type with a fraction": (["--arg", "x:double=arg1", WHERE, "x"], 2, "--arg: BPF has no floating point"),
    "an unknown type": (["--arg", "x:foo=arg1", WHERE, "x"], 2, "--arg: this is no type"),
    "a string that is a number": ([WHERE, 'arg1 == "a"'], 2, "--where: this is a number (u64), not a string"),
    "a division by 0": ([WHERE, "arg1 / 0"], 2, "--where: a division by 0"),
    "a histogram of strings": (["--hist", "comm"], 2, "--hist: a histogram needs a number"),
    "a format with too few values": (["--print", '"%d %d", arg1'], 2, "--print: this format takes 2 values"),
    "a format with a fraction": (["--print", '"%f", arg1'], 2, "--print: a format has %d"),
    "a value that nobody uses": (["--arg", "x:u64=arg1"], 2, "--arg only names a value"),
    "control characters": ([WHERE, "arg1 == \x1b[2J"], 2, "--where: this character is not a part"),
    "too deep": ([WHERE, "(" * 200], 2, "--where: it is nested too deeply"),
    "too long": ([WHERE, "1+" * 900], 2, "--where: it has more than 1,000 characters"),
    "no such member": ([WHERE, "item->sizes"], 2, "--where: struct item has no member 'sizes'; did you mean size?"),
    "a member with a fraction": (
        [WHERE, "item->weight"],
        2,
        "--where: this cannot be read: it is a floating",
    ),
    "the result of what is counted": (
        ["--count", WHERE, "retval"],
        2,
        "--where: this cannot be read: it is what a call",
    ),
}
ON_FILES: dict[str, Case] = {
    "no debug information": (
        ["{plain}:take", "-a", WHERE, "item->size"],
        2,
        "'item' is not known: it has no debug information",
    ),
    "hostile debug information": (
        ["{hostile}:take", "-a", WHERE, "item->size"],
        2,
        "'item' is not known: its debug information",
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, require: Callable[[bool, str], None]) -> dict[str, str]:
    gcc, folder = shutil.which("gcc") or "", tmp_path_factory.mktemp("wrong")
    require(bool(gcc), "there is no gcc")
    (folder / "x.c").write_text(SOURCE)
    names = ("asked", "plain", "stripped", "other", "cut", "hostile", "text", "many")
    found = {name: folder / name for name in names}
    subprocess.run([gcc, "-g", "-O1", "-o", found["asked"], folder / "x.c"], check=True)
    data = found["asked"].read_bytes()
    for name, option in (("plain", "--strip-debug"), ("stripped", "--strip-all")):
        subprocess.run(["objcopy", option, found["asked"], found[name]], check=True)
    found["other"].write_bytes(data[:18] + b"\xb7\0" + data[20:])  # e_machine: EM_AARCH64
    found["cut"].write_bytes(data[:1000])
    found["text"].write_text("no program\n" * 20)
    hostile = found["hostile"]
    (folder / "nonsense").write_bytes(b"\xff" * 5000)
    sections = (
        f"--update-section={name}={folder / 'nonsense'}" for name in (".debug_info", ".debug_abbrev", ".debug_aranges")
    )
    subprocess.run(["objcopy", *sections, found["asked"], hostile], check=True)
    labels = "".join(f".type f{i}, @function\nf{i}: ret\n.size f{i}, 1\n" for i in range(17_000))
    (folder / "many.s").write_text(labels)
    subprocess.run([gcc, "-shared", "-nostdlib", "-o", found["many"], folder / "many.s"], check=True)
    libc = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line)
    return {name: str(path) for name, path in found.items()} | {"libc": libc}


def check(arguments: list[str], status: int, said: str, err: str, *, caret: bool) -> None:
    assert "Traceback" not in err
    assert "internal error" not in err
    first, *rest = err.splitlines()
    assert first.startswith("trace-func: ")
    assert said in first, (first, arguments)
    assert 1 <= len(rest) <= (3 if caret else 4)
    assert all(line.isprintable() for line in err.splitlines())
    if caret:
        text, mark, remedy = rest
        assert set(mark) == {" ", "^"}
        assert text[len(mark) - 1 :] or mark.count("^") == 1  # at the end, behind the text
        assert remedy


@pytest.mark.parametrize("name", TARGETS)
def test_targets(name: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments, status, said = TARGETS[name]
    assert main([each.format(**files) for each in arguments]) == status
    check(arguments, status, said.format(**files), capsys.readouterr().err, caret=False)


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(name: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments, status, said = QUESTIONS[name]
    assert main([f"{files['asked']}:take", "-a", *arguments]) == status
    check(arguments, status, said, capsys.readouterr().err, caret=name != "a value that nobody uses")


@pytest.mark.parametrize("name", ON_FILES)
def test_debug_information(name: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments, status, said = ON_FILES[name]
    assert main([*(each.format(**files) for each in arguments), "-a", WHERE, "item->size"]) == status
    check(arguments, status, said, capsys.readouterr().err, caret=True)


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


BCC: dict[str, tuple[str | None, str]] = {
    "no bcc": (None, "there is no bcc, which compiles BPF programs"),
    "a bcc without its library": (
        "raise OSError('libbcc.so.0: not found')",
        "bcc cannot be loaded: OSError: libbcc.so.0",
    ),
    "an old bcc": (
        "__version__ = '0.8'\nclass BPF:\n    def __init__(self, text): raise Exception",
        "bcc 0.8 does not compile",
    ),
    "a bcc that crashes": ("import os; os.abort()", "bcc ended with status -6"),
}


@pytest.mark.parametrize("name", BCC)
def test_bcc(
    name: str,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A question needs bcc; a trace without one does not look for it."""
    code, said = BCC[name]
    module = tmp_path / "bcc"
    if code is not None:
        module.mkdir()
        (module / "__init__.py").write_text(code)
        (module / "libbcc.py").touch()
    monkeypatch.setattr(capabilities, "give_up_all_but", lambda kept: None)  # this process needs them for other tests
    monkeypatch.setattr(compiler, "find", functools.partial(place.find, (str(tmp_path),)))
    assert main([f"{files['asked']}:take", "-a", WHERE, "arg2 > 1"]) == 1
    check([], 1, said, capsys.readouterr().err, caret=False)
    assert main([f"{files['asked']}:take", "-o", "x.svg", "--", files["asked"]]) == 0
