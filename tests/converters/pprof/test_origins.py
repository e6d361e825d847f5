from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any

import pytest
from stallscope.converters import pprof
from stallscope.converters.model import Profile, ValueType
from stallscope.converters.model.origins import MEMORY, MOST_ANCESTORS, Ancestor, ProcessOrigin
from stallscope.converters.pprof.origins import decoded

MADE = ProcessOrigin(
    7, "a\udc80", [Ancestor(5, "torchrun"), Ancestor(4, "\x1b[2J")], "/opt/x", "/g", 12, {"PMI_SIZE": "8"}, MEMORY, 2
)


def test_what_was_written_is_read() -> None:
    assert decoded(json.loads(json.dumps(asdict(MADE)))) == MADE
    file = io.BytesIO()
    pprof.save(Profile([ValueType("off-cpu", "nanoseconds")], origins=[MADE]), file)
    file.seek(0)
    assert pprof.load(file).origins == [MADE]


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": -1},
        {"pid": True},
        {"pid_life": 0},
        {"began": 1.5},
        {"process": None},
        {"ancestors": None},
        {"ancestors": [{"pid": 1}]},
        {"ancestors": [{"pid": "1", "process": ""}]},
        {"ancestors": [{"pid": 1, "process": ""}] * (MOST_ANCESTORS + 1)},
        {"variables": {"HOME": "/"}},
        {"variables": {"PMI_SIZE": 8}},
        {"variables": []},
        {"source": "somewhere"},
        {"new": 1},
    ],
)
def test_anything_else_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        decoded(asdict(MADE) | changes)


@pytest.mark.parametrize("entry", [None, [], {"pid": 1}, 3])
def test_no_origin_is_refused(entry: object) -> None:
    with pytest.raises(ValueError):
        decoded(entry)
