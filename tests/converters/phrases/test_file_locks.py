from __future__ import annotations

from dataclasses import replace

import pytest
from file_lock_profiles import SEEN
from stallscope.converters.facts.file_locks import InCycle, file_holder
from stallscope.converters.phrases.file_locks import cycle, having


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seen": 9}, "gzip (pid 9, not traced) has the lock of /srv/db.lock whenever this was looked at"),
        ({"seen": 1, "looks": 1}, "gzip (pid 9, not traced) has the lock of /srv/db.lock at the one look at this"),
        ({"first": 4, "last": 4}, "has the lock of byte 4 of /srv/db.lock all the time"),
        ({"first": 4, "last": 1999}, "has the lock of bytes 4 to 1,999 of /srv/db.lock all the time"),
        ({"first": 4}, "has the lock of bytes 4 to the end of /srv/db.lock all the time"),
        ({"path": ""}, "has the lock of a file whose name is not known all the time"),
        ({"owner": ""}, "a process (pid 9, not traced) has the lock"),
        ({"owner": "", "owner_ended": True}, "a process that has ended (pid 9) has the lock"),
        ({"owner_ended": True}, "all the time, from a process that took it and has ended"),
        ({"sharers": 1}, "all the time, together with 1 process that shares its open file"),
        ({"sharers": 2}, "all the time, together with 2 processes that share its open file"),
        ({"others": 1}, "has the lock of /srv/db.lock all the time, and so has 1 other process"),
        ({"others": 2}, "has the lock of /srv/db.lock all the time, and so have 2 other processes"),
    ],
)
def test_words_for_the_holder(changed: dict[str, object], words: str) -> None:
    holder = file_holder([replace(SEEN, **changed)], (1,), (1,), 1)  # type: ignore[arg-type]
    assert holder
    assert words in having(holder)


def test_words_for_a_cycle() -> None:
    assert cycle((InCycle("a", 1, "/x"), InCycle("", 2, ""))) == (
        "a (pid 1) waits for the lock of /x, which a process (pid 2) has; "
        "a process (pid 2) waits for the lock of a file, which a (pid 1) has"
    )
