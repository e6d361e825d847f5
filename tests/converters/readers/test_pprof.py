from __future__ import annotations

import gzip
import io

import pytest
from stallscope.converters import pprof as saved
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Frame, Module, Profile, Sample, ValueType
from stallscope.converters.readers import pprof
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source


def test_reads_what_was_saved_however_large() -> None:
    stacks = [(Frame("main", "native", Module("/bin/x", "ab", 4096), 16), Frame(f"f{i}", "jit")) for i in range(9000)]
    samples = [Sample(stack, (i,), (("pid", 7),)) for i, stack in enumerate(stacks)]
    profile = Profile([ValueType("n", "count")], samples, lost={"x": 1})
    file = io.BytesIO()
    saved.save(profile, file)
    source = Source(io.BytesIO(file.getvalue()), "x")
    assert pprof.sniff(source.head)
    assert pprof.read(source, ReadOptions()) == profile


@pytest.mark.parametrize("text", [b"", b"\n", b"main;b 1\n", b"perf 1 2.3: x:\n", b"{}", b"\n\n\tab c (d)\n"])
def test_text_is_no_pprof(text: bytes) -> None:
    assert not pprof.sniff(text)


def test_damage_names_the_input() -> None:
    with pytest.raises(StallscopeError, match=r"^x: "):
        pprof.read(Source(io.BytesIO(b"\x0a\xff\xff"), "x"), ReadOptions())


def test_many_tiny_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "DEFAULT_LIMIT", 64_000)
    head = b"\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x01a\x32\x01b\x22\x02\x08\x01"
    some, many = b"\x12\x05\x0a\x01\x01\x12\x00" * 10, b"\x12\x03\x12\x01\x01" * 3_000
    with pytest.raises(StallscopeError, match="more than 2000 samples"):
        pprof.read(Source(io.BytesIO(gzip.compress(head + many)), "x"), ReadOptions())
    with pytest.raises(StallscopeError, match="x has more than 0 MiB, unpacked"):
        pprof.read(Source(io.BytesIO(gzip.compress(head + some * 10_000)), "x"), ReadOptions())
