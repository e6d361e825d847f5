"""Escapes in lines."""

from __future__ import annotations

from stallscope.converters.readers.stap.text import plain, unescaped


def test_escapes() -> None:
    assert unescaped(rb"a\\b\"c\040\303\244\t") == 'a\\b"c ä\t'


def test_bytes_that_are_no_text() -> None:
    assert plain(rb"a\377\n") == b"a\xff\n"
    assert unescaped(rb"\377") == "\udcff"
