from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.options import ReadOptions

DATA = Path(__file__).resolve().parents[2] / "data"
CORPUS = sorted(path for name in detect.formats() for path in (DATA / name).iterdir() if path.suffix != ".golden")


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_format_is_detected(path: Path) -> None:
    assert detect.read(str(path), ReadOptions())[0] == path.parent.name


@pytest.mark.parametrize("name", detect.formats())
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_damaged_input_raises_only_our_error(name: str, data: st.DataObject, tmp_path_factory: object) -> None:
    path = data.draw(st.sampled_from([path for path in CORPUS if path.parent.name == name]))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 40)))
        piece = data.draw(
            st.one_of(st.binary(max_size=8), st.sampled_from([b"\n\n", b"[" * 3000, b"9" * 400, b"-1", b"("]))
        )
        content[start:end] = piece
    damaged = TMP / f"{name}.damaged"
    damaged.write_bytes(content)
    for forced in ("", name):
        try:
            _, profile = detect.read(str(damaged), ReadOptions(pid=True, addrs=True), forced)
        except StallscopeError:
            continue
        for sample in profile.samples:
            assert len(sample.values) == len(profile.value_types)
            assert all(frame.name for frame in sample.stack)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    global TMP
    TMP = tmp_path


TMP = Path()


def test_nothing_but_comments_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("# ========\n# captured on : today\n\n#\n")
    with pytest.raises(StallscopeError, match="has nothing but comments"):
        detect.read(str(path), ReadOptions())


def test_text_that_is_not_known_because_of_a_nul_byte_is_told_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"some\ntext\nand\0 more\n")
    with pytest.raises(StallscopeError, match="line 3 has a NUL byte"):
        detect.read(str(path), ReadOptions())
    path.write_bytes(b"some\ntext\n")
    with pytest.raises(StallscopeError) as caught:
        detect.read(str(path), ReadOptions())
    assert "NUL" not in caught.value.cause
