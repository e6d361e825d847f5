"""The page of a real scan: it has the lanes of the scan's threads, also when it is made of the folder."""

from __future__ import annotations

import base64
import json
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from commands import run
from runner import FOLDER

pytestmark = pytest.mark.usefixtures("live")

TRACE_SCAN = str(Path(sys.executable).with_name("trace-scan"))


def block(page: Path, name: str) -> bytes:
    found = re.search(rf'id="{name}">\n([A-Za-z0-9+/=\n]+)</script>', page.read_text())
    assert found
    return zlib.decompress(base64.b64decode(found[1]))


def head(raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(raw[4 : 4 + int.from_bytes(raw[:4], "little")])
    return found


def test_a_page_and_the_page_of_its_folder(tmp_path: Path) -> None:
    page, kept, again = tmp_path / "scan.html", tmp_path / "scan.d", tmp_path / "again.html"
    outputs = "-o", str(page), "-o", str(kept)
    ended = run(*outputs, "--", str(FOLDER / "futex_pingpong"), "2000", command=TRACE_SCAN).check_succeeded()
    assert f"wrote {page}" in ended.out
    about = head(block(page, "lanesdata"))
    assert {"ping", "pong"} <= {name for _, _, name, *_ in about["threads"]}
    assert about["events"] > 4_000
    report = json.loads(block(page, "data"))
    assert any(row["name"] == "futex_pingpong" for row in report["rows"])
    assert report["machine"]["taken"][0][1] >= 0, "time in interrupts, from /proc/stat"
    assert {"matrix", "locks", "calls"} <= report.keys()
    assert page.stat().st_mode & 0o777 == 0o600
    run("--from", str(kept), "-o", str(again), command=TRACE_SCAN).check_succeeded()
    assert block(again, "lanesdata") == block(page, "lanesdata")
    for part in ("rows", "machine"):
        assert json.loads(block(again, "data"))[part] == report[part]
