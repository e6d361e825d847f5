"""CUDA's functions that copy memory: how many bytes, and in which direction, by their names and arguments.

The prototypes are those of cuda_runtime_api.h and cuda.h of CUDA 12.9.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .cuda import base_name, kind

COPY = 1 << 33
"""COOKIE_COPY of bpf/include/call_cookie.h; the other parts of a cookie are beside it."""
_SIZE, _TIMES, _KIND, _FORM, _NARROW, _DIRECTION = 34, 38, 42, 46, 48, 49
DIRECTIONS = ("host to host", "host to device", "device to host", "device to device", "by address", "unknown")
"""enum copy_direction of bpf/include/call_copies.bpf.h, in its order."""
_H2D, _D2H, _D2D, _BY_ADDRESS = 1, 2, 3, 4
_RUNTIME_3D, _DRIVER_2D, _DRIVER_3D = 1, 2, 3
"""enum copy_form of bpf/include/call_copies.bpf.h."""
_ASYNC = re.compile(r"Async(?:$|_)")


class Form(NamedTuple):
    """Places of the copy's size and direction in a function's arguments, which are counted from 1; 0: in none."""

    size: int = 0
    times: int = 0
    """Place of the factor of the size: for a rectangle, its height."""
    kind: int = 0
    struct: int = 0
    direction: int = -1
    """Direction that the function's name says; -1: it says none."""


_FORMS = {
    "cudaMemcpy": Form(3, kind=4),
    "cudaMemcpyPeer": Form(5, direction=_D2D),
    "cudaMemcpyToSymbol": Form(3, kind=5),
    "cudaMemcpyFromSymbol": Form(3, kind=5),
    "cudaMemcpy2D": Form(5, 6, kind=7),
    "cudaMemcpy3D": Form(struct=_RUNTIME_3D),
    "cuMemcpy": Form(3, direction=_BY_ADDRESS),
    "cuMemcpyPeer": Form(5, direction=_D2D),
    "cuMemcpyHtoD": Form(3, direction=_H2D),
    "cuMemcpyDtoH": Form(3, direction=_D2H),
    "cuMemcpyDtoD": Form(3, direction=_D2D),
    "cuMemcpy2D": Form(struct=_DRIVER_2D),
    "cuMemcpy2DUnaligned": Form(struct=_DRIVER_2D),
    "cuMemcpy3D": Form(struct=_DRIVER_3D),
}
"""Forms by name without ``Async``: those functions have the same arguments first."""
_UNVERSIONED = frozenset(("cuMemcpy", "cuMemcpyPeer"))
"""Driver functions that have had 64-bit sizes from the start. The others have them from _v2 on."""


def is_async(name: str) -> bool:
    """Whether the function only orders the copy."""
    return bool(_ASYNC.search(name))


def cookie(name: str) -> int:
    """Number for a probe's cookie that tells of a function's copies; 0 if it makes none."""
    if kind(name) != "copy":
        return 0
    base = base_name(name)
    form = _FORMS.get(base.removesuffix("Async"), Form())
    is_old = base.startswith("cuM") and "_v" not in name and base.removesuffix("Async") not in _UNVERSIONED
    if is_old and form.struct:
        form = Form()  # its struct is another one, too
    made = COPY | form.size << _SIZE | form.times << _TIMES | form.kind << _KIND | form.struct << _FORM
    made |= int(is_old and form.size > 0) << _NARROW
    return made | form.direction + 1 << _DIRECTION
