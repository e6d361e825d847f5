"""CUDA's functions: which are worth timing, what their results mean, and the files that have them."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

LAUNCH, SYNC = "launch", "sync"
"""Kinds of functions; the others are ``time`` and ``copy``."""
DRIVER = "libcuda.so.1"
"""The driver, which the runtime opens at its first call."""
_FOLDER = Path(__file__).parent
_SUFFIX = re.compile(r"(?:_v[0-9]+)?(?:_pts[zd]|_ptds)?$")
_FUNCTION = re.compile(r"cu(?:da)?[A-Z]")
_LIBRARY = re.compile(r"libcuda(?:rt)?(?:[-.][\w.-]*)?\.so(?:\.[0-9.]+)?")
"""Wheels put a hash into the name: libcudart-9335f6a2.so.12."""
_OTHER_RESULTS = re.compile(r"cuda(?:GetLastError|PeekAtLastError|GetErrorName|GetErrorString|CreateChannelDesc)")
"""Runtime functions whose result is no error of their own."""


def base_name(name: str) -> str:
    """Name without the suffixes of a version and of the per-thread default stream."""
    return _SUFFIX.sub("", name, count=1)


def kind(name: str) -> str:
    """``time``, ``sync``, ``copy`` or ``launch``; "" if the function is not timed by default."""
    return _kinds().get(base_name(name), "")


def is_function(name: str) -> bool:
    """Whether it can be a function of the runtime or of the driver."""
    return bool(_FUNCTION.match(name))


def is_library(name: str) -> bool:
    """Whether a file of this name, without its folder, is the runtime or the driver."""
    return bool(_LIBRARY.fullmatch(name))


def has_errors(name: str) -> bool:
    """Whether the function returns a CUresult or a cudaError."""
    return is_function(name) and not _OTHER_RESULTS.match(name)


def error_name(function: str, code: int) -> str:
    """The name of a result other than 0; ``CUresult 12345`` or ``cudaError 12345`` if it is not known."""
    is_runtime = function.startswith("cuda")
    known = _errors().get(("runtime" if is_runtime else "driver", code))
    return known or f"{'cudaError' if is_runtime else 'CUresult'} {code}"


@lru_cache(maxsize=1)
def _kinds() -> dict[str, str]:
    return {name: found for found, name in _lines("functions.tsv")}


@lru_cache(maxsize=1)
def _errors() -> dict[tuple[str, int], str]:
    return {(found, int(number, 16)): name for found, number, name in _lines("errors.tsv")}


def _lines(file: str) -> list[list[str]]:
    text = (_FOLDER / file).read_text(encoding="ascii")
    return [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
