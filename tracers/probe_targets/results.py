"""Results of functions that say how a call went: CUDA's and NCCL's."""

from __future__ import annotations

import re

from . import cuda

OTHER_ERRORS = "[other errors]"
_NCCL = re.compile(r"p?nccl[A-Z]")
_NO_RESULT = re.compile(r"p?nccl(?:GetErrorString|GetLastError)")
"""NCCL's functions that return no ncclResult_t."""
_NCCL_ERRORS = {
    1: "ncclUnhandledCudaError",
    2: "ncclSystemError",
    3: "ncclInternalError",
    4: "ncclInvalidArgument",
    5: "ncclInvalidUsage",
    6: "ncclRemoteError",
}
"""Names by ncclResult_t (nccl.h)."""
_IN_PROGRESS = 7
"""ncclInProgress: the call goes on, and has not failed."""


def has_errors(name: str) -> bool:
    """Whether a function returns an int that is 0 if the call went well."""
    return cuda.has_errors(name) or (bool(_NCCL.match(name)) and not _NO_RESULT.match(name))


def error_name(function: str, code: int) -> str:
    """The name of a result; "" if it is no error; ``ncclResult 12345`` or the like if it is not known. 0 stands for all
    for which there was no room."""
    if not code:
        return OTHER_ERRORS
    if not _NCCL.match(function):
        return cuda.error_name(function, code)
    return "" if code == _IN_PROGRESS else _NCCL_ERRORS.get(code, f"ncclResult {code}")
