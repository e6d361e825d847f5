"""Locks for tests of what shows them."""

from __future__ import annotations

from stallscope.converters.model.locks import MUTEX, OWNER, PROCESS, LockPlace, LockThread, LockTimes

MS = 1_000_000
HOSTILE = "a\x1b[2J\n\u202e\udcff<b>"


def lock(**fields: object) -> LockTimes:
    """A mutex for which two threads waited 90 ms."""
    made = LockTimes(
        "table+0x40", MUTEX, PROCESS, "train", 7, 90 * MS, 30, 9 * MS, 1, 20 * MS, 5,
        [LockThread("train", "a", 7, 8, 60 * MS, 20), LockThread("train", "b", 7, 9, 30 * MS, 10)], 0,
        [LockThread("train", "saver", 7, 10, 88 * MS, 29, OWNER, ("save", "unlock"))],
        [LockPlace(("step", "lock"), 90 * MS, 30)],
    )  # fmt: skip
    for name, value in fields.items():
        setattr(made, name, value)
    return made
