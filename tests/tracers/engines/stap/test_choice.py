from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.engines.stap.choice import require_elf


def test_symbols_are_those_of_an_elf_file(tmp_path: Path) -> None:
    text, empty = tmp_path / "a\x1b.txt", tmp_path / "empty"
    text.write_text("root:x:0:0\n")
    empty.touch()
    require_elf([])
    require_elf([sys.executable])
    for file in (text, empty):
        with pytest.raises(StallscopeError, match="is not an ELF file") as raised:
            require_elf([sys.executable, str(file)])
        assert raised.value.exit_code == 2
        assert "\x1b" not in raised.value.cause
        assert "a program or a library" in raised.value.remedy
    with pytest.raises(StallscopeError, match=r"cannot read .*: No such file"):
        require_elf([str(tmp_path / "gone")])
