"""Libraries that a wheel carries, beside what this machine's own tools say of them."""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "carried_libraries.py"
Require = Callable[[bool, str], None]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("carried_libraries", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def of_packages(require: Require) -> None:
    """A libbpf that a package of Debian's installed."""
    owner = shutil.which("dpkg-query") and subprocess.run(
        ["dpkg-query", "--search", "*/libbpf.so.1"], capture_output=True
    )
    require(bool(owner) and owner.returncode == 0, "libbpf.so.1 is of no package of Debian's here")


def carry(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True)


def installed_version(package: str) -> str:
    command = ["dpkg-query", "--show", "--showformat=${Version}", package]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def readelf(option: str, path: Path) -> str:
    return subprocess.run(["readelf", option, "--wide", path], capture_output=True, text=True, check=True).stdout


@pytest.mark.usefixtures("of_packages")
def test_libraries_and_licences(tmp_path: Path) -> None:
    folder = tmp_path / "carried"
    folder.mkdir()
    (folder / "left").touch()
    result = carry(folder)
    assert (result.returncode, result.stderr) == (0, "")
    entries = json.loads((folder / "carried.json").read_text())["libraries"]
    names = [entry["file"] for entry in entries]
    assert names[-1] == "libbpf.so.1"
    assert "libelf.so.1" in names
    for index, entry in enumerate(entries):
        needed = re.findall(r"NEEDED.*\[(.*)\]", readelf("--dynamic", folder / entry["file"]))
        others = {name for name in needed if not name.startswith(("libc.", "ld-linux"))}
        assert others <= set(names[:index])  # what is loaded before it
        assert "opyright" in (folder / f"{entry['name']}.copyright").read_text()
        assert entry["version"] == installed_version(entry["name"])
    assert "BSD-2-Clause" in (folder / f"{entries[-1]['name']}.copyright").read_text()
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in (folder / "LGPL-3").read_text()
    named = {name for entry in entries for name in entry["licences"]} | set(names) | {"carried.json"}
    assert {path.name for path in folder.iterdir()} == named


@pytest.mark.usefixtures("of_packages")
def test_platform_is_that_of_the_newest_symbol(tmp_path: Path) -> None:
    text = carry(tmp_path / "carried").stdout
    minors = [int(minor) for path in tmp_path.rglob("*.so.*") for minor in symbol_minors(path)]
    assert text == f"manylinux_2_{max(17, *minors)}_{platform.machine()}\n"


def symbol_minors(path: Path) -> list[str]:
    return re.findall(r"Name: GLIBC_2\.(\d+)", readelf("--version-info", path))


@pytest.mark.parametrize(
    ("versions", "oldest"),
    [
        (["GLIBC_2.2.5", "GLIBC_2.33", "GLIBC_2.4"], (2, 33)),
        (["GLIBC_2.2.5"], (2, 17)),
        (["GLIBC_2.4", "GLIBC_ABI_DT_RELR"], (2, 41)),
    ],
)
def test_oldest_c_library(script: ModuleType, versions: list[str], oldest: tuple[int, int]) -> None:
    assert script.oldest_c_library(versions, (2, 41)) == oldest


def test_load_order(script: ModuleType) -> None:
    needs = {"bpf": ["elf", "z", "libc.so.6"], "elf": ["zstd", "z", "ld-linux-x86-64.so.2"], "zstd": [], "z": []}

    def look(name: str) -> object:
        return script.Needs(needs[name], set())

    assert script.in_load_order("bpf", look) == ["zstd", "z", "elf", "bpf"]


def test_a_library_of_no_package_is_not_carried(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(script.NotCarried):
        script.package_of(tmp_path / "libbpf.so.1")


def test_a_package_without_its_licence_is_not_carried(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "_DOCUMENTS", tmp_path)
    with pytest.raises(script.NotCarried, match="licence of libbpf1"):
        script.copy_licences(script.Package("libbpf1", "1", "libbpf", "1"), tmp_path)
    (tmp_path / "libbpf1").mkdir()
    (tmp_path / "libbpf1" / "copyright").write_text("see /usr/share/common-licenses/LGPL-0.5.")
    with pytest.raises(script.NotCarried, match=r"common-licenses/LGPL-0\.5 is missing"):
        script.copy_licences(script.Package("libbpf1", "1", "libbpf", "1"), tmp_path)


def test_none_is_carried_and_that_is_told(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "_WANTED", "libbpf-from-the-future.so.1")
    assert script.main([str(tmp_path / "carried")]) == 0
    told = capsys.readouterr()
    assert told.out == f"linux_{platform.machine()}\n"
    assert "carries no libbpf" in told.err
    assert "libbpf-from-the-future.so.1" in told.err
    assert not (tmp_path / "carried").exists()
