"""Waits for Python's interpreter lock (GIL), made by hand: the numbers are chosen, so that every expected text is
known. Times in ns."""

from __future__ import annotations

from stallscope.converters.model import ThreadTimes
from stallscope.converters.model.gil import GilThread, GilTimes

HOG = ("main", "train.py:3 hog")


def gil(time: int = 300, pid: int = 7, holders: list[GilThread] | None = None) -> GilTimes:
    """The main thread waits; thread loader has the lock for 200 of that."""
    having = [GilThread("loader", 9, 180, 4, HOG), GilThread("loader", 9, 20, 1, ("main", "train.py:5 other"))]
    waiting = [GilThread("python3", pid, time, 9)]
    return GilTimes("python3", pid, time, 9, 50, 1, 5, waiting, 0, having if holders is None else holders)


def threads(pid: int = 7, wall: int = 500, number: int = 2) -> list[ThreadTimes]:
    """Threads of its process, which were traced for so long each."""
    return [ThreadTimes(pid, "train.py", pid + i, "python3", wall, 0, 0, {}) for i in range(number)]
