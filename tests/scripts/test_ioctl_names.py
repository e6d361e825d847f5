"""The script that makes the table of ioctl names, with headers of ours and with those of this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "ioctl_names.py"
sys.path.insert(0, str(SCRIPT.parent))

import ioctl_names  # noqa: E402  # no package has it
from ioctl_names import Command, Header  # noqa: E402

HEADER = """
#include <linux/ioctl.h>
struct known { int a[5]; };
#define DEMO_MAGIC 'F'
#define DEMO_SIZE 12
#define DEMO_IO(nr) _IO(DEMO_MAGIC, nr)
#define DEMO_START DEMO_IO(1)
#define DEMO_GET _IOR(DEMO_MAGIC, 2, struct known)
#define DEMO_LOST _IOW(DEMO_MAGIC, 3, struct unknown)
#define DEMO_ALIAS _IOR(DEMO_MAGIC, 2, struct known)
#define DEMO_OLD 0x5301
"""


@pytest.fixture
def gcc(require: Callable[[bool, str], None]) -> None:
    require(shutil.which("gcc") is not None, "there is no gcc")


@pytest.fixture
def folder(gcc: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "demo.h").write_text(HEADER)
    monkeypatch.setattr(ioctl_names, "HEADERS", (Header("demo", "demo.h", "DEMO_OLD"),))
    return tmp_path


def test_numbers_are_the_compilers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ioctl_names.table([str(folder)]) == [
        Command("demo", 0x4601, "DEMO_START"),
        Command("demo", 0x5301, "DEMO_OLD"),
        Command("demo", 0x80144602, "DEMO_GET"),
    ]
    assert capsys.readouterr().err == "demo.h: left out DEMO_LOST\n"


def test_a_header_that_is_not_there_is_told(folder: Path) -> None:
    (folder / "demo.h").unlink()
    with pytest.raises(SystemExit, match=r"demo\.h"):
        ioctl_names.table([str(folder)])


def test_of_the_kernels_headers_only_a_headers_own_macros_count(gcc: None) -> None:
    header = Header("random", "linux/random.h")
    found = ioctl_names.numbers(header, ioctl_names.candidates(header, []), [])
    assert Command("random", 0x80045200, "RNDGETENTCNT") in found
    assert {command.name[:3] for command in found} == {"RND"}


def test_a_source_has_to_be_named() -> None:
    result = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "--source" in result.stderr
