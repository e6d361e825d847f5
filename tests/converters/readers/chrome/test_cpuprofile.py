from __future__ import annotations

import io
import json
from typing import Any

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.model import Profile
from stallscope.converters.readers.base.options import ReadOptions
from stallscope.converters.readers.base.source import Source
from stallscope.converters.readers.chrome import cpuprofile

CALL = {"functionName": "main", "scriptId": "1", "url": "file:///app.js", "lineNumber": 0, "columnNumber": 1}
FLAT = {"nodes": [{"id": 1, "callFrame": CALL, "hitCount": 2}], "samples": [1, 1], "timeDeltas": [0, 4], "startTime": 9}
TREE = {
    "head": {**CALL, "id": 1, "hitCount": 2, "children": []},
    "samples": [1, 1],
    "timestamps": [5, 9],
    "startTime": 0,
}


def read(document: Any) -> Profile:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return cpuprofile.read(Source(io.BytesIO(text), "x"), ReadOptions())


@pytest.mark.parametrize("document", [FLAT, TREE])
def test_both_layouts(document: dict[str, Any]) -> None:
    assert cpuprofile.sniff(json.dumps(document).encode())
    profile = read(document)
    assert [(sample.stack[0].name, sample.values) for sample in profile.samples] == [("main", (4_000, 2))]
    assert profile.timeline is not None


@pytest.mark.parametrize("text", [b"", b"[]", b'{"traceEvents": [], "nodes": 1, "callFrame": 2}', b'{"nodes": []}'])
def test_other_json_is_not_taken(text: bytes) -> None:
    assert not cpuprofile.sniff(text)


@pytest.mark.parametrize("document", [[], 7, {"nodes": 7}, {"head": {}}, {"samples": [{}]}, b"[" * 100_000])
def test_what_is_none(document: Any) -> None:
    with pytest.raises(StallscopeError, match="x"):
        read(document)


def test_damaged_json_has_its_line() -> None:
    with pytest.raises(StallscopeError, match="x, line 2: expected JSON"):
        read(b'{"nodes": [],\n]')


def test_a_profile_that_is_cut_is_told_as_cut() -> None:
    text = json.dumps({**FLAT, "title": "\u00e9"}, ensure_ascii=False, indent=1).encode()
    for end in range(30, len(text)):
        line = text[:end].count(b"\n") + 1
        with pytest.raises(StallscopeError, match=f"x is cut short: it ends in line {line}, within its JSON"):
            read(text[:end])
    with pytest.raises(StallscopeError, match="x is no JSON"):
        read(text.replace("\u00e9".encode(), b"\xe9"))
