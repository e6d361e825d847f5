"""The wheel as `make wheel` builds it: what is in it, and that its commands run where nothing else is installed."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


CARRIED = "stallscope/tracers/kernel/carried"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def clean_environment(path: str) -> dict[str, str]:
    """Environment without what would let a command find this source tree; `path` is the PATH."""
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
def run(installed: Path, tmp_path: Path) -> Run:
    """Runs a command of the wheel in an empty folder with an empty PATH: no clang, no other tool.

    Files that are ``hidden`` from it are empty there, in mounts of its own.
    """

    def run_command(command: str, *arguments: str, hidden: Iterable[Path] = ()) -> subprocess.CompletedProcess[str]:
        environment = clean_environment(str(tmp_path / "nothing"))
        argv = [str(installed / command), *arguments]
        if hidden:
            mounts = [f"/bin/mount --bind {tmp_path / 'empty'} {path}" for path in hidden]
            (tmp_path / "empty").touch()
            argv = ["/usr/bin/unshare", "--mount", "/bin/sh", "-ec", "\n".join([*mounts, 'exec "$0" "$@"']), *argv]
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


@pytest.fixture
def carrying(wheel: Path, require: Callable[[bool, str], None]) -> Path:
    """The wheel, where it carries libbpf: it can where that is of a package of Debian's."""
    owner = shutil.which("dpkg-query") and subprocess.run(["dpkg-query", "--search", "*/libbpf.so.1"], check=False)
    require(bool(owner) and owner.returncode == 0, "libbpf.so.1 is of no package of Debian's here")
    return wheel


def test_wheel_is_of_this_architecture(wheel: Path) -> None:
    assert re.search(rf"-py3-none-(linux|manylinux_2_\d+)_{platform.machine()}\.whl$", wheel.name)


def test_wheel_carries_libbpf_with_its_licences(carrying: Path) -> None:
    with zipfile.ZipFile(carrying) as archive:
        files = {path.name: path for path in map(Path, archive.namelist()) if path.parent == Path(CARRIED)}
        manifest = json.loads(archive.read(f"{CARRIED}/carried.json"))
    assert "manylinux" in carrying.name
    assert {"libbpf.so.1", "libelf.so.1"} <= files.keys()
    named = {name for entry in manifest["libraries"] for name in (entry["file"], *entry["licences"])}
    assert files.keys() == named | {"carried.json"}
    assert all(len(entry["licences"]) > 0 for entry in manifest["libraries"])
    # What runs from the tree has the system's.
    assert not (ROOT / CARRIED.removeprefix("stallscope/")).exists()


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


@pytest.mark.parametrize(
    "command",
    [
        "trace-offcpu",
        "trace-oncpu",
        "trace-wall",
        "trace-ioctl",
        "trace-cuda",
        "trace-func",
        "trace-doctor",
        "trace-convert",
    ],
)
def test_help(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: ")


def microseconds(folded: Path) -> int:
    return sum(int(line.rpartition(" ")[2]) for line in folded.read_text().splitlines())


def test_trace_from_the_wheel(run: Run, tmp_path: Path, require: Callable[[bool, str], None]) -> None:
    doctor = run("trace-doctor")
    require(doctor.returncode == 0, f"this machine cannot trace:\n{doctor.stdout}{doctor.stderr}")
    assert re.search(r"^ok +libbpf: v1\.\d+, the system's$", doctor.stdout, re.MULTILINE)
    result = run("trace-offcpu", "-o", "sleep.folded", "--", "/bin/sleep", "0.2")
    assert result.returncode == 0, result.stderr
    assert microseconds(tmp_path / "sleep.folded") >= 200_000


@pytest.mark.usefixtures("carrying")
def test_trace_without_the_systems_libraries(run: Run, tmp_path: Path, require: Callable[[bool, str], None]) -> None:
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    hidden = {Path(path).resolve() for path in re.findall(r"lib(?:bpf|elf)\.so\.1 .* => (\S+)$", known, re.MULTILINE)}
    assert len(hidden) >= 2
    doctor = run("trace-doctor")
    require(doctor.returncode == 0, f"this machine cannot trace:\n{doctor.stdout}{doctor.stderr}")
    told = run("trace-doctor", "-v", hidden=hidden)
    assert re.search(r"^ok +libbpf: v1\.\d+, carried by the wheel \(libbpf1\S* \S+ of .+\)$", told.stdout, re.MULTILINE)
    assert re.search(r"^ +the system's cannot be used: \S+libbpf\.so\.1: file too short$", told.stdout, re.MULTILINE)
    result = run("trace-offcpu", "-o", "sleep.folded", "--", "/bin/sleep", "0.2", hidden=hidden)
    assert result.returncode == 0, result.stderr
    assert microseconds(tmp_path / "sleep.folded") >= 200_000


@pytest.mark.usefixtures("carrying")
def test_what_is_loaded_is_what_the_wheel_carries(installed: Path, tmp_path: Path) -> None:
    """The wheel's libelf is loaded, of which the system has one, and its zlib, of which this process may have one
    already."""
    code = (
        "import re, zlib\n"
        "from stallscope.tracers.kernel import loading\n"
        "library, _ = loading._load_carried()\n"
        "library.libbpf_version_string\n"
        "print(*{line.split()[-1] for line in open('/proc/self/maps') if re.search(r'lib(bpf|elf)', line)})"
    )
    command = [str(installed / "python"), "-c", code]
    output = subprocess.run(command, cwd=tmp_path, env=clean_environment(""), capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    paths = list(map(Path, output.stdout.split()))
    assert sorted(path.name for path in paths) == ["libbpf.so.1", "libelf.so.1"]
    assert all(path.is_relative_to(installed.parent) and path.parent.name == "carried" for path in paths)
