"""Choice of the libbpf.so.1 that is loaded: the system's where that can be used, else the one that the wheel carries.

No libbpf before 1.0 has the name libbpf.so.1. What the wheel carries is made by ``scripts/carried_libraries.py``.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ...converters.base.errors import StallscopeError

_NAME = "libbpf.so.1"
_CARRIED = Path(__file__).with_name("carried")
_REMEDY = (
    "install libbpf 1.0 or newer (apt-get install libbpf1, in Debian 12, Ubuntu 24.04 and newer), "
    "or a wheel that carries it (make wheel on Debian)"
)


class Loaded(NamedTuple):
    """The library, and in words where it is from. ``refused``: why the system's is not it; empty where it is."""

    library: ctypes.CDLL
    origin: str
    refused: str = ""


def load(bind: Callable[[ctypes.CDLL], None]) -> Loaded:
    """The first libbpf that loads and that ``bind`` takes: it raises AttributeError where a function is missing.

    StallscopeError where there is none.
    """
    try:
        library = ctypes.CDLL(_NAME, use_errno=True)
        bind(library)
        return Loaded(library, "the system's")
    except (OSError, AttributeError) as error:
        refused = str(error)
    if not (_CARRIED / _NAME).exists():  # in the source tree, and in wheels that could not be given one
        raise StallscopeError(f"{_NAME} cannot be used: {refused}", _REMEDY)
    try:
        library, origin = _load_carried()
        bind(library)
        return Loaded(library, origin, refused)
    except (OSError, AttributeError, ValueError, LookupError) as error:
        cause = f"{_NAME} cannot be used: the system's: {refused}; the one that came with stallscope: {error}"
        raise StallscopeError(cause, _REMEDY) from None


def _load_carried() -> tuple[ctypes.CDLL, str]:
    """Loads the libbpf of the wheel, and before it what it needs: the dynamic linker then takes that by its name, and
    looks no further."""
    manifest = json.loads((_CARRIED / "carried.json").read_text())
    *needed, last = manifest["libraries"]
    for entry in needed:
        ctypes.CDLL(str(_CARRIED / entry["file"]))
    library = ctypes.CDLL(str(_CARRIED / last["file"]), use_errno=True)
    return library, f"carried by the wheel ({last['name']} {last['version']} of {manifest['system']})"
