from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.core import health, privilege
from stallscope.tracers.core.health import Finding
from stallscope.tracers.doctor import main

GOOD = Finding("libbpf", True, True, "v1.1")
USEFUL = Finding("perf events", False, False, "refused", "allow them")
BAD = Finding("privilege", False, True, "uid 1000", "sudo trace-doctor")
NO_REMEDY = Finding("kernel symbols", False, False, "hidden")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Path | None]]:
    """Sets what the checks find; returns the --btf that they were given."""

    def prepare(*findings: Finding) -> list[Path | None]:
        seen: list[Path | None] = []

        def check_all(btf: Path | None) -> tuple[Finding, ...]:
            seen.append(btf)
            return findings

        monkeypatch.setattr(health, "check_all", check_all)
        return seen

    return prepare


@pytest.mark.parametrize(
    ("findings", "status", "verdict"),
    [
        ((GOOD,), 0, "trace-offcpu can run here"),
        ((GOOD, USEFUL, NO_REMEDY), 0, "trace-offcpu can run here"),
        ((BAD,), 1, "trace-offcpu cannot run here: mend what failed, first to last"),
        ((GOOD, BAD, USEFUL, GOOD), 1, "trace-offcpu cannot run here: mend what failed, first to last"),
    ],
)
def test_exit_status(
    findings: tuple[Finding, ...],
    status: int,
    verdict: str,
    found: Callable[..., list[Path | None]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert found(*findings) == []
    assert main([]) == status
    out = capsys.readouterr()
    assert out.out.splitlines()[-1] == verdict
    assert out.err == ""


def test_lines(found: Callable[..., list[Path | None]], capsys: pytest.CaptureFixture[str]) -> None:
    seen = found(GOOD, USEFUL, BAD, NO_REMEDY, Finding("x", False, True, "a\x1b[2Jb", "c\nd"))
    main(["--btf", "/x/vmlinux"])
    assert seen == [Path("/x/vmlinux")]
    assert capsys.readouterr().out.splitlines()[:-1] == [
        "ok    libbpf: v1.1",
        "no    perf events: refused",
        "      mend: allow them",
        "FAIL  privilege: uid 1000",
        "      mend: sudo trace-doctor",
        "no    kernel symbols: hidden",
        "FAIL  x: a\\x1b[2Jb",
        "      mend: c\\x0ad",
    ]


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["surplus"]) == 2
    assert capsys.readouterr().err.startswith("trace-doctor: ")


def test_help_shows_what_scripts_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "trace-doctor && echo ready" in capsys.readouterr().out


def test_not_root(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The checks for real, without the capabilities."""
    monkeypatch.setattr(privilege, "effective_capabilities", lambda: 0)
    assert main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAIL  privilege: uid ")
    assert any(line.startswith("FAIL  BPF programs: tracing needs ") for line in lines)


def test_here(root: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "FAIL" not in capsys.readouterr().out
