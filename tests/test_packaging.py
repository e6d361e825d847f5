"""The wheel as `make wheel` builds it: what is in it, and that its commands run where nothing else is installed."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def clean_environment(path: str) -> dict[str, str]:
    """Without what would let a command find this source tree; `path` is the PATH."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "PATH": path}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    }
    command = ["make", "-C", str(ROOT), "wheel", f"DIST={folder}"]
    build = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert build.returncode == 0, build.stdout + build.stderr
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of a fresh virtual environment that has the wheel and nothing of this one."""
    home = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    install = subprocess.run(pip, cwd=home, env=clean_environment(os.environ["PATH"]), capture_output=True, text=True)
    assert install.returncode == 0, install.stderr
    return home / "bin"


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command of the wheel in an empty folder with an empty PATH: no clang, no other tool."""

    def run_command(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = clean_environment(str(tmp_path / "nothing"))
        argv = [str(installed / command), *arguments]
        return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    return run_command


def test_wheel_carries_everything_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        probes = archive.read("stallscope/bpf/stallscope.bpf.o")
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"stallscope"}
    for room in ("converters", "tracers"):
        files = {path for path in (ROOT / room).rglob("*") if path.is_file() and path.suffix not in (".md", ".pyc")}
        assert {f"stallscope/{path.relative_to(ROOT)}" for path in files} - names == set()
        assert f"stallscope/{room}/py.typed" in names
    assert {f"stallscope/stap/{path.name}" for path in (ROOT / "stap").glob("*.stp")} - names == set()
    assert probes == (ROOT / "bpf" / "stallscope.bpf.o").read_bytes()


def test_wheel_is_of_this_architecture(wheel: Path) -> None:
    assert wheel.name.endswith(f"-py3-none-linux_{platform.machine()}.whl")


def test_probes_are_stripped_but_keep_their_types(wheel: Path, tmp_path: Path) -> None:
    from elftools.elf.elffile import ELFFile

    with zipfile.ZipFile(wheel) as archive:
        path = Path(archive.extract("stallscope/bpf/stallscope.bpf.o", tmp_path))
    with path.open("rb") as file:
        sections = {section.name for section in ELFFile(file).iter_sections()}
    assert {".BTF", ".BTF.ext", "license", ".maps"} <= sections
    assert not {name for name in sections if name.startswith(".debug")}


def test_package_comes_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, stallscope.tracers, stallscope.converters\n"
        "print(stallscope.tracers.__path__[0])\n"
        "print(u.find_spec('tracers'), u.find_spec('converters'), u.find_spec('bpf'))"
    )
    command = [str(installed / "python"), "-c", code]
    output = subprocess.run(
        command, cwd=tmp_path, env=clean_environment(""), capture_output=True, text=True, check=True
    )
    path, bare = output.stdout.splitlines()
    assert Path(path).is_relative_to(installed.parent)
    assert bare == "None None None"


@pytest.mark.parametrize("command", ["trace-offcpu", "trace-oncpu", "trace-wall", "trace-doctor", "trace-convert"])
def test_help(run: Callable[..., subprocess.CompletedProcess[str]], command: str) -> None:
    result = run(command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: ")


def test_trace_from_the_wheel(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, require: Callable[[bool, str], None]
) -> None:
    doctor = run("trace-doctor")
    require(doctor.returncode == 0, f"this machine cannot trace:\n{doctor.stdout}{doctor.stderr}")
    result = run("trace-offcpu", "-o", "sleep.folded", "--", "/bin/sleep", "0.2")
    assert result.returncode == 0, result.stderr
    total = sum(int(line.rpartition(" ")[2]) for line in (tmp_path / "sleep.folded").read_text().splitlines())
    assert total >= 200_000  # µs
