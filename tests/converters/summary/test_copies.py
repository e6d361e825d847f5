from __future__ import annotations

from stallscope.converters.model.copies import Copies
from stallscope.converters.summary.copies import to_json


def test_an_entry_has_all_parts() -> None:
    made = Copies("cudaMemcpy", "libcudart.so.12", 7, "train", "device to host", False, 4, 4096, 0, 1000, 600, 100)
    assert to_json([made]) == [
        {
            "name": "cudaMemcpy",
            "library": "libcudart.so.12",
            "process": "train",
            "pid": 7,
            "pid_life": 1,
            "direction": "device to host",
            "async": False,
            "count": 4,
            "bytes": 4096,
            "unknown_size_count": 0,
            "total_ns": 1000,
            "on_cpu_ns": 300,
            "blocked_ns": 600,
            "runnable_ns": 100,
            "bytes_per_second": 4096e6,
        }
    ]
