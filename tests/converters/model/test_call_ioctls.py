from __future__ import annotations

from stallscope.converters.model.call_ioctls import CallIoctls


def test_the_rest_was_on_a_core_and_the_frame_has_both_names() -> None:
    made = CallIoctls("cuInit", "libcuda.so.1", 7, "train", "TUNSETIFF", "/dev/net/tun", 3, 100, 60, 10)
    assert made.on_cpu == 30
    assert made.frame == "TUNSETIFF /dev/net/tun"
