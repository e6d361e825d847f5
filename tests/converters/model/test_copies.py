from __future__ import annotations

from dataclasses import replace

from stallscope.converters.model.copies import Copies

SYNC = Copies(
    "cudaMemcpy", "libcudart.so.12", 7, "train", "host to device", is_async=False, count=2, bytes=4096, total=1000
)


def test_bandwidth_is_known_of_synchronous_copies_with_sizes() -> None:
    assert SYNC.bandwidth == 4096e6
    assert replace(SYNC, is_async=True).bandwidth is None
    assert replace(SYNC, unknown=1).bandwidth is None
    assert replace(SYNC, total=0).bandwidth is None
