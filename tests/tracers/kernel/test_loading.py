"""Choice of libbpf, among libraries of one function that are compiled here."""

from __future__ import annotations

import ctypes
import json
import subprocess
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.kernel import loading

NAME = "libbpf-of-a-test.so.1"
NEEDED = "libelf-of-a-test.so.1"


def compiled(path: Path, source: str, *libraries: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-x", "c", "-", "-x", "none", *libraries]
    subprocess.run([*command, "-o", path], input=source, text=True, check=True)
    return path


def bind(library: ctypes.CDLL) -> None:
    """Binds what is needed: a function that says which library it is of."""
    library.which.restype = ctypes.c_int


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places of the system and the wheel, neither of which has one. (`dlopen` takes a path as it takes a name.)"""
    monkeypatch.setattr(loading, "_NAME", str(tmp_path / "system" / NAME))
    monkeypatch.setattr(loading, "_CARRIED", tmp_path / "carried")


def give_system(folder: Path, source: str = "int which(void) { return 1; }") -> None:
    compiled(folder / "system" / NAME, source)


def give_wheel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says 2 by way of a library that it needs and that is nowhere else."""
    needed = compiled(folder / "carried" / NEEDED, "int number(void) { return 2; }")
    compiled(folder / "carried" / NAME, "int number(void); int which(void) { return number(); }", needed)
    package = {"name": "libbpf1", "version": "1:1.1.2"}
    manifest = {"system": "Debian", "libraries": [{"file": NEEDED, **package}, {"file": NAME, **package}]}
    (folder / "carried" / "carried.json").write_text(json.dumps(manifest))


def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> loading.Loaded:
    """Loads the library with the name that both have on a real system."""
    system = loading._NAME
    real = ctypes.CDLL

    def cdll(name: str, **options: bool) -> ctypes.CDLL:
        return real(system if name == NAME else name, **options)

    monkeypatch.setattr(loading, "_NAME", NAME)
    monkeypatch.setattr(ctypes, "CDLL", cdll)
    return loading.load(bind)


def test_system_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_system(tmp_path)
    give_wheel(tmp_path, monkeypatch)
    loaded = found(tmp_path, monkeypatch)
    assert (loaded.library.which(), loaded.origin, loaded.refused) == (1, "the system's", "")


def test_carried_where_the_system_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_wheel(tmp_path, monkeypatch)
    loaded = found(tmp_path, monkeypatch)
    assert (loaded.library.which(), loaded.origin) == (2, "carried by the wheel (libbpf1 1:1.1.2 of Debian)")
    assert "cannot open shared object file" in loaded.refused


@pytest.mark.parametrize("damage", ["no function", "empty"])
def test_carried_where_the_systems_is_unusable(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_system(tmp_path, "int another(void) { return 1; }")
    if damage == "empty":
        (tmp_path / "system" / NAME).write_bytes(b"")
    give_wheel(tmp_path, monkeypatch)
    loaded = found(tmp_path, monkeypatch)
    assert loaded.library.which() == 2
    assert ("undefined symbol: which" if damage == "no function" else "file too short") in loaded.refused


def test_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StallscopeError) as caught:
        found(tmp_path, monkeypatch)
    assert caught.value.cause.startswith(f"{NAME} cannot be used: {tmp_path}/system/{NAME}: cannot open shared object")
    assert "apt-get install libbpf1" in caught.value.remedy
    assert "wheel" in caught.value.remedy


@pytest.mark.parametrize("damage", ["library", "needed", "manifest", "contents"])
def test_carried_is_damaged(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_wheel(tmp_path, monkeypatch)
    files = {"library": NAME, "needed": NEEDED, "manifest": "carried.json", "contents": "carried.json"}
    path = tmp_path / "carried" / files[damage]
    path.write_text('{"libraries": []}' if damage == "contents" else "")
    with pytest.raises(StallscopeError) as caught:
        found(tmp_path, monkeypatch)
    assert "the system's: " in caught.value.cause
    assert "the one that came with stallscope: " in caught.value.cause
