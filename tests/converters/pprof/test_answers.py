from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from stallscope.converters.model.asked_values import AskedValues
from stallscope.converters.pprof.answers import decoded

MADE = AskedValues("hist", "n\x1b[2J", "f", "lib", 3, -6, [(-4, -2, 3)], [("a", 2)], 1)


def test_what_was_written_is_read() -> None:
    assert decoded(json.loads(json.dumps(asdict(MADE)))) == MADE


def test_older_versions_have_no_values() -> None:
    entry = json.loads(json.dumps(asdict(MADE)))
    del entry["values"], entry["others"]
    made = decoded(entry)
    assert (made.values, made.others, made.sum) == ([], 0, -6)


@pytest.mark.parametrize(
    "changes",
    [
        {"buckets": [[1, 2]]},
        {"buckets": [[1, 2, -3]]},
        {"buckets": None},
        {"values": [["a"]]},
        {"values": [[1, 1]]},
        {"values": [["a", True]]},
        {"count": -1},
        {"sum": (1 << 64) + 1},
        {"sum": 0.5},
        {"name": None},
        {"new": 1},
    ],
)
def test_anything_else_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        decoded(json.loads(json.dumps(asdict(MADE))) | changes)


def test_no_dictionary_is_refused() -> None:
    with pytest.raises(ValueError, match="expected"):
        decoded([])
