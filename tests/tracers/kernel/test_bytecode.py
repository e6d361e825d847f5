from __future__ import annotations

import struct

import pytest
from stallscope.tracers.kernel.bytecode import with_maps

INSTRUCTION = struct.Struct("<BBhi")
BY_NUMBER = INSTRUCTION.pack(0x18, 0x11, 0, 7) + bytes(8)
CONSTANT = INSTRUCTION.pack(0x18, 0x01, 0, 7) + INSTRUCTION.pack(0, 0, 0, 0x1118)
EXIT = INSTRUCTION.pack(0x95, 0, 0, 0)


def test_numbers_of_maps_become_descriptors() -> None:
    found = with_maps(CONSTANT + BY_NUMBER + EXIT, {7: 42})
    assert found == CONSTANT + INSTRUCTION.pack(0x18, 0x11, 0, 42) + bytes(8) + EXIT


def test_an_unknown_map_is_an_error() -> None:
    with pytest.raises(KeyError):
        with_maps(BY_NUMBER, {8: 1})
