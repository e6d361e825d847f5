"""Profiles of pprof: what ``go tool pprof`` (Debian: golang-go) says of them before and after they went through us."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from corpora import Comparison
from stallscope.converters.convert import main as convert

REPORTS = (
    ("-top",),
    ("-top", "-noinlines"),
    ("-top", "-addresses"),
    ("-top", "-lines"),
    ("-top", "-cum", "-nodecount=500"),
    ("-tags",),
    ("-traces",),
    ("-comments",),
    ("-top", "-sample_index=0"),
)
_NO_GO = "go tool pprof is not there: apt-get install golang-go"


def pprof(folder: Path) -> Iterator[Comparison]:
    """Every file in ``folder``, and of a checkout of google/pprof its test data, that go tool pprof can read."""
    if not shutil.which("go"):
        yield Comparison("all", False, "", _NO_GO)
        return
    with tempfile.TemporaryDirectory() as made:
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size < 1 << 26):
            original = Path(made, "original.pb.gz")
            # Formats that are older than profile.proto are made it: they are not ours to read.
            if _is_proto(path):
                original = path
            elif "testdata" not in path.parts or not _report(("-proto", f"-output={original}"), path)[0]:
                continue
            yield from _compare(path.name, original, Path(made))


def _is_proto(path: Path) -> bool:
    return path.name.endswith((".pb.gz", ".pprof", ".prof")) and path.read_bytes()[:2] == b"\x1f\x8b"


def _compare(name: str, original: Path, made: Path) -> Iterator[Comparison]:
    ours = made / "ours.pb.gz"
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = convert(["--force", str(original), "-o", str(ours)])
    if status:
        yield Comparison(name, False, "", said.getvalue().strip())
        return
    for options in REPORTS:
        (fine, theirs), (_, given) = _report(options, original), _report(options, ours)
        if fine:
            yield Comparison(f"{name} {' '.join(options)}", theirs == given, "", _first(theirs, given))


def _report(options: tuple[str, ...], path: Path) -> tuple[bool, str]:
    """Whether pprof made the report, and the report."""
    command = ["go", "tool", "pprof", "-symbolize=none", *options, str(path)]
    environment = {**os.environ, "PPROF_BINARY_PATH": "/nonexistent"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode == 0, done.stdout


def _first(theirs: str, ours: str) -> str:
    pairs = zip([*theirs.splitlines(), ""], [*ours.splitlines(), ""], strict=False)
    return next((f"theirs {left.strip()!a}, ours {right.strip()!a}" for left, right in pairs if left != right), "")
