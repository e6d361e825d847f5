from __future__ import annotations

from dataclasses import replace

from file_lock_profiles import SEEN


def test_devices_are_written_as_the_kernel_does() -> None:
    assert replace(SEEN, device=0xFE << 20 | 0x1A).device_numbers == "fe:1a"
