from __future__ import annotations

import numpy as np
from stallscope.converters.model.critical import CriticalPath, Segment, segment_name, thread_name
from stallscope.converters.model.scheduling import NO_STACK, THREAD, Scheduling

SCHEDULING = Scheduling(9, threads=np.array([(5, 5, 0, 0, 0), (6, 5, 0, 1, 0)], THREAD), names=["train", "loader"])


def test_names_of_threads() -> None:
    assert thread_name(SCHEDULING, 0) == "train-5"
    assert thread_name(SCHEDULING, 1) == "train (loader)-6"
    assert segment_name(SCHEDULING, Segment(0, 1, -1, 77, "not traced", NO_STACK)) == "thread-77"


def test_wall_time() -> None:
    parts = (Segment(2, 5, 0, 5, "running", NO_STACK), Segment(5, 9, 1, 6, "running", NO_STACK))
    assert CriticalPath(0, parts).wall == sum(part.time for part in parts) == 7
    assert CriticalPath(0, ()).wall == 0
