"""Functions of communication libraries whose calls are kept with their arguments: which, in which files, and what the
probes are told of them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ...converters.collectives.signatures import COMPLETES, CUDA, ENQUEUES, GLOO, signature_of
from . import cuda, gloo
from .wanted import Wanted, is_safe

_ARGUMENTS, _MADE_SECOND, _IF_CHANGED = 1 << 34, 1 << 37, 1 << 44
"""COOKIE_ARGUMENTS, COOKIE_MADE_SECOND and COOKIE_IF_CHANGED of bpf/include/call_cookie.h."""
_MADE, _REQUESTS = 38, 42
"""First bits of its COOKIE_MADE and COOKIE_REQUESTS."""
_LIBRARY = re.compile(r"lib(nccl|rccl|mpi|mpich|torch_cuda|torch_hip)([-_.][-\w.]*)?\.so([.\d]*)")
"""Files with NCCL's functions, its own and those that it is linked into, and with MPI's. For Gloo's, see `gloo`."""


def cookie(name: str) -> int:
    """Number for a probe's cookie; 0 for other functions."""
    of = signature_of(gloo.function_of(name) or name)
    if not of:
        return 0
    if of.library == GLOO:
        return _ARGUMENTS | (_MADE_SECOND if of.kind == ENQUEUES else 0)
    if of.kind == COMPLETES:
        return _ARGUMENTS | (of.requests + 1) << _REQUESTS | (0 if "Wait" in of.name else _IF_CHANGED)
    return _ARGUMENTS | (max(of.made, of.request, of.status) + 1) << _MADE


def is_library(name: str) -> bool:
    """Whether a file of this name, without its folder, can have such functions."""
    return bool(_LIBRARY.fullmatch(name)) or gloo.is_library(name)


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
        if gloo.function_of(name):
            return True
        of = signature_of(name)
        if not of or not is_safe(name) or name.startswith("PMPI_"):
            return False
        return of.library != CUDA or cuda.is_function(name)

    def readable(self, name: str) -> str:
        """Name of a function in the outputs."""
        return gloo.function_of(name) or name

    def is_exported(self, path: str, identity: tuple[int, int]) -> bool:
        """Whether all wanted functions of a file are among those that other files can call."""
        return gloo.is_library(os.path.basename(path))

    def is_begin(self, name: str) -> bool:
        """Whether a function is to have a probe at its entry only: those that can throw."""
        return bool(gloo.function_of(name))


@dataclass(frozen=True)
class WithCuda(Collectives):
    """Functions of collectives, and those of CUDA that are traced without options."""

    def wants(self, name: str, path: str, identity: tuple[int, int]) -> bool:
        """Whether a function of such a file is wanted."""
        return super().wants(name, path, identity) or Wanted().wants(name, path, identity)
