"""Tables of names: what a line is, and that those of the package are whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stallscope.tracers.ioctls import table

FOLDER = Path(table.__file__).parent


def test_a_line_is_a_kind_a_number_and_a_name(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("# made of nothing\ntty\t0x5401\tTCGETS\n\t0x541b\tFIONREAD\n")
    assert table.read(path) == {("tty", 0x5401): "TCGETS", ("", 0x541B): "FIONREAD"}


@pytest.mark.parametrize("name", ["linux.tsv", "nvidia.tsv"])
def test_each_table_names_its_source_and_is_sorted(name: str) -> None:
    first, *lines = (FOLDER / name).read_text().splitlines()
    assert re.match(r"# .* [Ff]rom .*\d+\.\d+.*; made by scripts/\w+\.py$", first)
    keys = [(kind, int(number, 16)) for kind, number, _ in (line.split("\t") for line in lines)]
    assert keys == sorted(set(keys))
    assert len(lines) > 1000
