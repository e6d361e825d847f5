from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.tracers.base import privilege
from stallscope.tracers.command import survey
from stallscope.tracers.doctor import main
from stallscope.tracers.engines.ebpf import health
from stallscope.tracers.engines.ebpf.health import Finding

GOOD = Finding("libbpf", True, True, "v1.1")
USEFUL = Finding("perf events", False, False, "refused", "allow them")
BAD = Finding("privilege", False, True, "uid 1000", "sudo trace-doctor")
SAMPLES = Finding("samples", True, False, "a clock", lacking=("trace-oncpu", "trace-wall"))
NO_SAMPLES = Finding("samples", False, False, "refused", "allow", lacking=("trace-oncpu", "trace-wall"))
OTHERS = "trace-wakeup, trace-ioctl, trace-cuda, trace-func, trace-nccl and trace-scan"
ALL = f"trace-offcpu, trace-oncpu, trace-wall, {OTHERS}"
LEFT = f"trace-offcpu, {OTHERS}"
QUESTIONS = Finding("questions of trace-func", True, False, "bcc 9 compiles them")
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
        monkeypatch.setattr(survey, "survey", lambda _btf: iter(()))
        monkeypatch.setattr(survey, "questions", lambda: QUESTIONS)
        return seen

    return prepare


@pytest.mark.parametrize(
    ("findings", "status", "verdict"),
    [
        ((GOOD,), 0, f"{ALL} can run here"),
        ((GOOD, USEFUL, NO_REMEDY), 0, f"{ALL} can run here"),
        ((GOOD, SAMPLES), 0, f"{ALL} can run here"),
        (
            (GOOD, NO_SAMPLES, GOOD),
            0,
            f"{LEFT} can run here, trace-oncpu and trace-wall cannot",
        ),
        ((BAD,), 1, f"{ALL} cannot run here: mend what failed, first to last"),
        ((GOOD, BAD, USEFUL, NO_SAMPLES), 1, f"{ALL} cannot run here: mend what failed, first to last"),
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
        "ok    questions of trace-func: bcc 9 compiles them",
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


def test_engines_are_listed_after_the_checks(
    found: Callable[..., list[Path | None]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found(GOOD)
    monkeypatch.setattr(
        survey, "survey", lambda _btf: iter([Finding("engine x", False, False, "there is no x", "get x")])
    )
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok    libbpf: v1.1",
        "no    engine x: there is no x",
        "      mend: get x",
        "ok    questions of trace-func: bcc 9 compiles them",
        f"{ALL} can run here",
    ]


def test_another_engine_may_do(
    found: Callable[..., list[Path | None]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found(BAD)
    monkeypatch.setattr(
        survey,
        "survey",
        lambda _btf: iter(
            [
                Finding("engine x", True, False, "trace-oncpu; not trace-wall: no reason"),
                Finding("engine y", False, False, "nothing"),
                Finding("engine z", True, False, "trace-wall"),
            ]
        ),
    )
    assert main([]) == 1
    verdict = (
        f"with the engine libbpf, {ALL} cannot run here: mend what failed, first to last; "
        "with engine x trace-oncpu can; with engine z trace-wall can"
    )
    assert capsys.readouterr().out.splitlines()[-1] == verdict


def test_here(root: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "FAIL" not in capsys.readouterr().out


def test_preparing(
    found: Callable[..., list[Path | None]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "broken").write_bytes(b"\x7fELF")
    checks = found(BAD)
    assert main(["--prepare", "/bin/true", str(tmp_path / "broken")]) == 0
    assert checks == [], "nothing else is checked"
    out = capsys.readouterr()
    first, second = out.out.splitlines()
    assert first.startswith("4 files: 3 compiled, 0 were there already, 1 have no table; ")
    assert first.endswith(" s")
    assert second == "without a table: 1 (truncated, or offsets beyond its end)"
    assert out.err == "", "no terminal"
    assert main(["--prepare", "/no/such"]) == 1
    assert capsys.readouterr().err.startswith("trace-doctor: there is no file, program or process /no/such")
    monkeypatch.setenv("STALLSCOPE_CACHE", "/dev/null/x")
    assert main(["--prepare", "/bin/true"]) == 1
    assert "trace-doctor: the tables cannot be kept in /dev/null/x: no cache: " in capsys.readouterr().err
