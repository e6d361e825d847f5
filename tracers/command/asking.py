"""Measures that ask questions, made from these: checks and compiles what can be before the trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from ..bcc_compiler.compiler import compile_c
from ..bcc_compiler.place import find
from ..dwarf.parameters import Parameters, member_names
from ..engines.ebpf.measures.answers import planned, program_text
from ..expressions.asked import Asked, Bound, Fault
from ..expressions.check import Unknown
from ..expressions.lexer import QuestionError
from ..expressions.nodes import Node
from ..images.elf import ElfError, ElfFile, FileSource
from ..images.files import HOST
from ..images.functions import Function, find_functions, function_names
from ..measures.calls import AskedCalls
from ..measures.span_options import SpanOptions
from ..probe_targets.entries import CODE
from ..probe_targets.targets import Target, Targets
from .arguments import parameters
from .question_options import Printer, refusal
from .target_list import address_in


class Compiler:
    """Compiles with bcc; what was compiled is not compiled again."""

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, bytes]] = {}

    def __call__(self, text: str, programs: Sequence[str]) -> Mapping[str, bytes]:
        """Instructions by name. StallscopeError."""
        if text not in self._known:
            self._known[text] = compile_c(text, programs).programs
        return self._known[text]


class Binder:
    """Says what questions mean for functions whose debug information tells their arguments."""

    def __init__(self, asked: Asked, unknown: Fault, bind: Callable[[Mapping[str, Node]], Bound] | None = None) -> None:
        """``unknown``: what is wrong if there is no debug information. ``bind``: what the questions mean for arguments
        of these names, by default in a call that is timed; raises Fault."""
        self._bind = bind or asked.bind
        self._asked, self._unknown = asked, unknown
        self._members = member_names(asked)
        self._known: dict[object, list[Parameters]] = {}

    def __call__(self, fd: int, elf: ElfFile, path: str, found: Sequence[Function]) -> list[Bound | Fault]:
        """Binds functions of an open file. Fault for one that lacks what is asked for."""
        status = os.fstat(fd)
        key = status.st_dev, status.st_ino, status.st_mtime_ns, tuple(function.offset for function in found)
        if key not in self._known:
            addresses = [address_in(elf, function.offset) for function in found]
            self._known[key] = parameters(fd, elf, path, addresses, self._members)
        return [self._bound(each) for each in self._known[key]]

    def _bound(self, known: Parameters) -> Bound | Fault:
        if known.fault:
            error = self._unknown.error
            what = f"{error.what.partition(';')[0]}: {known.fault}"
            return Fault(self._unknown.option, self._unknown.text, QuestionError(what, error.begin, error.end))
        try:
            return self._bind(known.values)
        except Fault as fault:
            return fault


def make_calls(targets: Targets, asked: Asked, *, quiet: bool, spans: SpanOptions | None, over: int) -> AskedCalls:
    """StallscopeError for a wrong question, and without bcc. ``quiet``: standard output is for other data."""
    compiler = Compiler()
    binder: Binder | None = None
    try:
        bound = asked.bind()
    except Fault as fault:
        if not isinstance(fault.error, Unknown):
            raise refusal(fault) from None
        binder = Binder(asked, fault)
        for target in targets.targets:
            check_target(target, targets, binder)
        find()
    else:
        compiler(*program_text([planned(bound)], returns=True))
    return AskedCalls(
        targets,
        spans=spans,
        over=over,
        asked=asked,
        compiler=compiler,
        show=Printer(to_stderr=quiet).show,
        binder=binder,
    )


def check_target(target: Target, targets: Targets, binder: Binder) -> None:
    """StallscopeError if a file is given by its path, and none of its functions has what is asked for."""
    first, *others = target.libraries
    if first.identity is None or others:
        return
    only = Targets.of([target], returns=targets.returns)
    fd = HOST.open_regular(first.path)
    try:
        elf = ElfFile(FileSource(fd))
        only.learn(first.path, first.identity, lambda: function_names(elf))
        found = find_functions(elf, lambda name: only.wants(name, first.path, first.identity or (0, 0)), CODE)
        bounds = binder(fd, elf, first.path, found)
    except (ElfError, OSError):
        return  # target_list.check() has told
    finally:
        os.close(fd)
    faults = [bound for bound in bounds if isinstance(bound, Fault)]
    if faults and len(faults) == len(bounds):
        raise refusal(faults[0])
