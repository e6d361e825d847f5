"""Functions of communication libraries whose calls are kept with their arguments: which, in which files, and what the
probes are told of them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ...converters.collectives.signatures import CUDA, MAKES, signature_of
from . import cuda
from .wanted import Wanted, is_safe

_ARGUMENTS, _MADE_FIRST, _MADE_FOURTH = 1 << 34, 1 << 35, 1 << 36
"""COOKIE_ARGUMENTS, COOKIE_MADE_FIRST and COOKIE_MADE_FOURTH of bpf/include/call_cookie.h."""
_LIBRARY = re.compile(r"lib(nccl|rccl|mpi|mpich|torch_cuda|torch_hip)([-_.][-\w.]*)?\.so([.\d]*)")
"""Files with NCCL's functions, its own and those that it is linked into, and with MPI's."""


def cookie(name: str) -> int:
    """Number for a probe's cookie; 0 for other functions."""
    of = signature_of(name)
    if not of:
        return 0
    made = {0: _MADE_FIRST, 3: _MADE_FOURTH}.get(of.made, 0) if of.kind == MAKES else 0
    return _ARGUMENTS | made


def is_library(name: str) -> bool:
    """Whether a file of this name, without its folder, can have such functions."""
    return bool(_LIBRARY.fullmatch(name))


@dataclass(frozen=True)
class Collectives(Wanted):
    """The functions of `signatures`: in libraries of communication, in those that the user named as ``libraries``, and
    in programs that they are linked into; those of CUDA that wait for them, in CUDA's."""

    option = "--lib"

    def looks_into(self, path: str, identity: tuple[int, int], *, is_program: bool) -> bool:
        """Whether a file can have wanted functions."""
        return is_library(os.path.basename(path)) or super().looks_into(path, identity, is_program=is_program)

    def wants(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        """Whether a function of such a file is wanted. MPI's come with two names at one address: one is enough."""
        of = signature_of(name)
        if not of or not is_safe(name) or name.startswith("PMPI_"):
            return False
        return of.library != CUDA or cuda.is_function(name)


@dataclass(frozen=True)
class WithCuda(Collectives):
    """Functions of collectives, and those of CUDA that are traced without options."""

    def wants(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        """Whether a function of such a file is wanted."""
        return super().wants(name, path, identity) or Wanted().wants(name, path, identity)
