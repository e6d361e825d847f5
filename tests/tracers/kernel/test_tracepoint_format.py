from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.kernel import tracefs
from stallscope.tracers.kernel.tracepoint_format import parse_format, read_format

TEXT = """name: sched_switch
ID: 366
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] filename;\toffset:28;\tsize:4;\tsigned:0;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;

print fmt: "%s", __print_flags(REC->prev_state & 255, "|", { 0x00000001, "S" }, { 2, "D" }, { 0, "R" }, { 3, "x" })
"""


def test_fields_and_flags() -> None:
    found = parse_format("sched:sched_switch", TEXT)
    assert found.number == 366
    assert found.fields["prev_comm"] == (8, 16)
    assert found.fields["filename"] == (28, 4)
    assert found.offset("prev_state", 8) == 32
    assert found.flags() == {1: "S", 2: "D"}


def test_flags_of_old_kernels() -> None:
    """Kernels before 4.14 have threads that sleep first, without a space behind them."""
    fields = TEXT.partition("print fmt")[0]
    flags = '"|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 64, "x" }) : "R", REC->prev_state & 1024 ? "+" : ""'
    found = parse_format("sched:sched_switch", f'{fields}print fmt: "%s", __print_flags(REC->prev_state, {flags}\n')
    assert found.flags() == {1: "S", 2: "D", 4: "T", 64: "x"}


@pytest.mark.parametrize(
    ("field", "size", "cause"), [("prev_state", 4, "has prev_state in 8 bytes"), ("tgid", 4, "has no tgid")]
)
def test_another_shape_is_an_error(field: str, size: int, cause: str) -> None:
    with pytest.raises(StallscopeError, match=cause):
        parse_format("sched:sched_switch", TEXT).offset(field, size)


@pytest.mark.parametrize("text", ["", "ID: 3\n", "\tfield:int x;\toffset:0;\tsize:4;\tsigned:1;\n"])
def test_no_format(text: str) -> None:
    with pytest.raises(StallscopeError, match="not understood"):
        parse_format("a:b", text)


def test_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "events" / "sched" / "sched_switch"
    folder.mkdir(parents=True)
    (folder / "format").write_text(TEXT)
    monkeypatch.setattr(tracefs, "folder", lambda: tmp_path)
    assert read_format("sched:sched_switch").number == 366
    with pytest.raises(StallscopeError, match="a:b cannot be read: No such file"):
        read_format("a:b")
