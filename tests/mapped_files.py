"""Files of mappings, found by their path."""

from __future__ import annotations

from pathlib import Path

from stallscope.tracers.images.elf import BytesSource, ElfFile
from stallscope.tracers.images.maps import Mapping


class Files:
    """Finds files by their path, and notes what was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.without: set[str] = set()

    def __call__(self, pid: int, mapping: Mapping) -> ElfFile | None:
        self.asked.append(mapping.path)
        if mapping.path in self.without or not mapping.is_file:
            return None
        return ElfFile(BytesSource(Path(mapping.path).read_bytes()))
