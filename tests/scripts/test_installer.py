"""make install and make uninstall, with a wheel of one command, into a folder of ours."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "installer.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wheel") / "stallscope-1-py3-none-any.whl"
    info = "stallscope-1.dist-info"
    files = {
        "stallscope_demo.py": "def main():\n    print('it runs')\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: stallscope\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntrace-demo = stallscope_demo:main\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return path


def installer(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_install_again_and_uninstall(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "other").touch()
    for _ in range(2):
        result = installer("install", tmp_path, wheel)
        assert result.returncode == 0, result.stderr
        link = tmp_path / "bin" / "trace-demo"
        assert link.is_symlink()
        assert subprocess.run([link], capture_output=True, text=True).stdout == "it runs\n"
    result = installer("uninstall", tmp_path)
    assert result.returncode == 0, result.stderr
    assert everything(tmp_path) == {"bin", "bin/other", "lib"}
    assert installer("uninstall", tmp_path).stdout.startswith("nothing of ours")


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("/bin/true"), Path.mkdir])
def test_foreign_command_is_not_overwritten(tmp_path: Path, wheel: Path, make: Callable[[Path], object]) -> None:
    (tmp_path / "bin").mkdir()
    make(tmp_path / "bin" / "trace-demo")
    result = installer("install", tmp_path, wheel)
    assert result.returncode == 1
    assert "is not ours" in result.stderr
    assert "Traceback" not in result.stderr
    assert everything(tmp_path) == {"bin", "bin/trace-demo"}


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_foreign_environment_is_not_touched(tmp_path: Path, wheel: Path, action: str) -> None:
    (tmp_path / "lib" / "stallscope").mkdir(parents=True)
    (tmp_path / "lib" / "stallscope" / "precious").touch()
    result = installer(action, tmp_path, *([wheel] if action == "install" else []))
    assert result.returncode == 1
    assert "is not ours" in result.stderr
    assert everything(tmp_path) == {"lib", "lib/stallscope", "lib/stallscope/precious"}


def test_environment_behind_a_link_is_not_touched(tmp_path: Path, wheel: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "installed-by-stallscope").touch()
    (tmp_path / "prefix" / "lib").mkdir(parents=True)
    (tmp_path / "prefix" / "lib" / "stallscope").symlink_to(elsewhere)
    for arguments in (("install", tmp_path / "prefix", wheel), ("uninstall", tmp_path / "prefix")):
        assert installer(*arguments).returncode == 1
    assert everything(elsewhere) == {"installed-by-stallscope"}


def test_usage() -> None:
    assert installer("install").returncode == 2


def test_planted_modules_and_settings_do_not_count(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted files count neither when it is installed nor when a command runs."""
    trap, marks = tmp_path / "trap", tmp_path / "marks"
    trap.mkdir()
    for name in ("json", "typing", "pip", "stallscope_demo", "sitecustomize"):
        (trap / f"{name}.py").write_text(f"open({str(marks)!r}, 'w')")
    (trap / "pip.conf").write_text("[global]\nno-such-option\n")
    monkeypatch.chdir(trap)
    result = installer("install", tmp_path / "prefix", wheel)
    assert result.returncode == 0, result.stderr
    for name in ("PYTHONPATH", "PIP_TARGET", "PYTHONUSERBASE"):
        monkeypatch.setenv(name, str(trap))
    monkeypatch.setenv("PYTHONPATH", f":{trap}")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(trap / "pip.conf"))
    command = tmp_path / "prefix" / "bin" / "trace-demo"
    assert subprocess.run([command], capture_output=True, text=True).stdout == "it runs\n"
    result = subprocess.run(
        [sys.executable, "-I", SCRIPT, "install", tmp_path / "prefix", wheel], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert not marks.exists()


def test_versions_are_those_of_the_list(tmp_path: Path, wheel: Path) -> None:
    versions = tmp_path / "versions.txt"
    versions.write_text("stallscope==2\n")
    assert installer("install", tmp_path / "prefix", wheel, versions).returncode == 1
    versions.write_text("stallscope==1\n")
    assert installer("install", tmp_path / "prefix", wheel, versions).returncode == 0
