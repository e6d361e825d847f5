"""Tables of names: lines of a kind, a hexadecimal number and a name, with tabs between them."""

from __future__ import annotations

from pathlib import Path


def read(path: Path) -> dict[tuple[str, int], str]:
    """Kind and number to name. A line that begins with # is a remark."""
    with path.open(encoding="ascii") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {(kind, int(number, 16)): name for kind, number, name in lines}
