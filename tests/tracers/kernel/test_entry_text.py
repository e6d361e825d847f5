"""Places where interrupts enter the kernel."""

from __future__ import annotations

from pathlib import Path

from stallscope.tracers.kernel.entry_text import entry_text


def test_bounds(tmp_path: Path) -> None:
    file = tmp_path / "kallsyms"
    file.write_text(
        "ffffffff81000000 T _text\nffffffff82000000 T __entry_text_start\n"
        "ffffffff82000010 t x__entry_text_end\nffffffff82001a87 T __entry_text_end\n"
    )
    assert entry_text(file) == (0xFFFFFFFF82000000, 0xFFFFFFFF82001A87)


def test_hidden_or_absent(tmp_path: Path) -> None:
    file = tmp_path / "kallsyms"
    assert entry_text(file) == (0, 0)
    file.write_text("0000000000000000 T __entry_text_start\n0000000000000000 T __entry_text_end\n")
    assert entry_text(file) == (0, 0)
    file.write_text("ffffffff81000000 T _text\n")
    assert entry_text(file) == (0, 0)
