from __future__ import annotations

import os
from pathlib import Path

import pytest
from stallscope.tracers.base.programs import find_program, programs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Holds programs of these names, which is all that PATH leads to."""
    names = ("env", "sh", "bash", "python3", "prog", "other", "nice", "timeout", "taskset", "grep")
    for name in names:
        (tmp_path / name).write_bytes(b"\x7fELF")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "data").write_text("no program")
    return tmp_path


def names(folder: Path, *command: str, **environ: str) -> list[str]:
    """Names of the programs of a command."""
    found = programs(list(command), {"PATH": str(folder), **environ})
    assert all(os.path.dirname(program.path) in (str(folder), ".", "") for program in found)
    return [os.path.basename(program.path) for program in found]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["prog", "other"], ["prog"]),
        (["missing"], []),
        (["data"], []),
        ([""], []),
        (["env", "prog", "other"], ["env", "prog"]),
        (["env", "A=1", "-u", "B", "-C", "/", "--", "prog"], ["env", "prog"]),
        (["env", "-S", "A=1 prog x"], ["env", "prog"]),
        (["env", "-Sprog x"], ["env", "prog"]),
        (["env", "A=1"], ["env"]),
        (["env", "-u"], ["env"]),
        (["nice", "-n", "5", "prog"], ["nice", "prog"]),
        (["timeout", "-k", "1", "5", "taskset", "-c", "0", "prog"], ["timeout", "taskset", "prog"]),
        (["sh", "-c", "exec prog"], ["sh", "prog"]),
        (["sh", "-c", "cd /; A=1 exec env B=2 prog | grep x && other", "name"], ["sh", "env", "grep", "other", "prog"]),
        (["bash", "-ec", "if true; then\n(prog x)\nfi # other"], ["bash", "prog"]),
        (["sh", "-c", "for i in 1 2; do prog; done"], ["sh", "prog"]),
        (["sh", "-c", "prog 'open"], ["sh", "prog"]),
        (["sh", "-c"], ["sh"]),
        (["sh"], ["sh"]),
        (["python3", "prog"], ["python3"]),
        (["bash", "-lc", "nice -n 3 python3 train.py --epochs 1"], ["bash", "nice", "python3"]),
    ],
)
def test_what_a_command_runs(folder: Path, command: list[str], expected: list[str]) -> None:
    assert names(folder, *command) == expected


def test_interpreters_of_scripts(folder: Path) -> None:
    for name, line in {
        "plain": f"#!{folder}/python3\n",
        "spaces": f"#! \t{folder}/python3 \t-u x\nprog",
        "through": f"#!{folder}/env -S A=1 python3 -u\n",
        "twice": f"#!{folder}/plain\n",
        "gone": "#!/no/such/interpreter\n",
        "empty": "#!\n",
        "itself": f"#!{folder}/itself\n",
    }.items():
        (folder / name).write_text(line)
        (folder / name).chmod(0o755)
    assert names(folder, "plain") == names(folder, str(folder / "spaces")) == names(folder, "twice") == ["python3"]
    assert names(folder, "through") == ["env", "python3"]
    assert names(folder, "gone") == names(folder, "itself") == []
    assert len(names(folder, "empty")) <= 1


def test_scripts_of_the_shell_are_read(folder: Path) -> None:
    script = folder / "train.sh"
    script.write_text(f"#!{folder}/bash\n# don't\nset -e\nOMP_NUM_THREADS=1 python3 train.py 2>&1 |\n  grep loss\n")
    script.chmod(0o755)
    assert names(folder, "train.sh") == names(folder, "bash", "-x", str(script)) == ["bash", "python3", "grep"]
    assert names(folder, "bash", "/dev/zero") == names(folder, "bash", str(folder)) == ["bash"]


def test_the_environment_is_the_one_that_the_program_will_have(folder: Path) -> None:
    command = ["env", "-u", "GONE", "LD_LIBRARY_PATH=/new", "nice", "prog"]
    found = programs(command, {"PATH": str(folder), "GONE": "x", "LD_LIBRARY_PATH": "/old"})
    seen = {os.path.basename(program.path): program.environ for program in found}
    assert seen["env"]["LD_LIBRARY_PATH"] == "/old"
    assert seen["prog"] == seen["nice"] == {"PATH": str(folder), "LD_LIBRARY_PATH": "/new"}
    (other,) = programs([str(folder / "env"), "-i", "prog"], {"PATH": str(folder)})
    assert os.path.basename(other.path) == "env", "nothing is on the empty PATH"


def test_search_as_execvp_does_it(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    path = {"PATH": f"/nowhere:{folder}/data:{folder}"}
    assert find_program("prog", path) == str(folder / "prog")
    assert find_program("./prog", {"PATH": ""}) == "./prog"
    assert find_program("prog", {"PATH": "/nowhere:"}) == "./prog"
    assert find_program("prog", {"PATH": "/nowhere"}) is None
    assert find_program("a\0b", path) is None
    (folder / "later").mkdir()
    (folder / "later" / "data").write_bytes(b"")
    (folder / "later" / "data").chmod(0o700)
    assert find_program("data", {"PATH": f"{folder}:{folder}/later"}) == str(folder / "later" / "data")
    (folder / "later" / "prog").mkdir()
    assert find_program("prog", {"PATH": f"{folder}/later:{folder}"}) == str(folder / "prog")
    assert find_program("sh", {}) is not None, "there is a PATH where none is given"


def test_many_commands_are_cut(folder: Path) -> None:
    for i in range(20):
        (folder / f"p{i}").write_bytes(b"\x7fELF")
        (folder / f"p{i}").chmod(0o755)
    found = names(folder, "sh", "-c", ";".join(f"p{i}" for i in range(20)))
    assert found == ["sh", *(f"p{i}" for i in range(7))]
    assert names(folder, "sh", "-c", "(" * 100_000 + "prog") in (["sh"], ["sh", "prog"])
