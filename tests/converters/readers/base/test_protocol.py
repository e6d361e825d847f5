from __future__ import annotations

import pytest
from stallscope.converters.readers import detect
from stallscope.converters.readers.base.protocol import ReaderInParts, ReaderOfContext

ARGUMENTS = {
    "sniff": ["bytes", "bool"],
    "read": ["Source", "ReadOptions", "Profile"],
}


@pytest.mark.parametrize("name", detect.formats())
def test_every_reader_keeps_the_protocol(name: str) -> None:
    reader = detect.module(name)
    assert {function: [*getattr(reader, function).__annotations__.values()] for function in ARGUMENTS} == ARGUMENTS


def test_which_readers_read_in_parts() -> None:
    readers = {name: detect.module(name) for name in detect.formats()}
    in_parts = {name: reader.SEPARATOR for name, reader in readers.items() if isinstance(reader, ReaderInParts)}
    assert in_parts == {"perf": b"\n\n", "folded": b"\n"}
    assert [name for name, reader in readers.items() if isinstance(reader, ReaderOfContext)] == ["perf"]
