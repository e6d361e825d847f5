from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from stallscope.converters.model.wait_objects import (
    MOST_ENDS,
    MOST_LINKS,
    MOST_PEERS,
    PIPE,
    TCP,
    WRITES,
    Link,
    ObjectEnd,
    ObjectPeer,
    WaitObject,
)
from stallscope.converters.pprof.wait_objects import decoded

MADE = WaitObject(7, PIPE, device="0:15", inode=9, does=WRITES, ends=[ObjectEnd("a\udc80", 12)], more_ends=3)
PEER = ObjectPeer("redis", 7, TCP, "127.0.0.1:6379", 4, serves=True)
LINK = Link("10.0.0.2:80", 1, 2, 3, 4, 5, 6, 7, 8, has_more=True)


def test_what_was_written_is_read() -> None:
    assert decoded(json.loads(json.dumps(asdict(MADE)))) == MADE


@pytest.mark.parametrize(
    "changes",
    [
        {"id": -1},
        {"id": True},
        {"inode": 1.5},
        {"name": None},
        {"listens": 1},
        {"ends": None},
        {"ends": [{"process": "x"}]},
        {"ends": [{"process": 1, "pid": 1}]},
        {"ends": [{"process": "x", "pid": 1}] * (MOST_ENDS + 1)},
        {"queued": -1},
        {"backlog": None},
        {"peers": None},
        {"peers": [{"process": "x", "pid": 1}]},
        {"peers": [asdict(PEER) | {"serves": 1}]},
        {"peers": [asdict(PEER)] * (MOST_PEERS + 1)},
        {"links": None},
        {"links": [asdict(LINK) | {"busy": -1}]},
        {"links": [asdict(LINK) | {"has_more": 1}]},
        {"links": [asdict(LINK)] * (MOST_LINKS + 1)},
        {"new": 1},
    ],
)
def test_anything_else_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        decoded(asdict(MADE) | changes)


@pytest.mark.parametrize("entry", [None, [], {"ends": []}, 3])
def test_no_object_is_refused(entry: object) -> None:
    with pytest.raises(ValueError):
        decoded(entry)


def test_peers_of_an_event_loop() -> None:
    made = replace(MADE, peers=[PEER], queued=3, backlog=2)
    assert decoded(json.loads(json.dumps(asdict(made)))) == made


def test_links_of_a_connection() -> None:
    made = replace(MADE, links=[LINK])
    assert decoded(json.loads(json.dumps(asdict(made)))) == made


def test_older_captures_have_less() -> None:
    entry = asdict(MADE)
    for name in ("queued", "backlog", "peers", "links"):
        del entry[name]
    assert decoded(entry) == MADE
