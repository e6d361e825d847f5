"""Measure of counted events that asks questions, made from these: what can be refused is refused before the trace."""

from __future__ import annotations

import os

from ..bcc_compiler.place import find
from ..engines.ebpf.measures.event_questions import at_entry, at_places, of_tracepoint
from ..expressions.asked import Asked, Fault
from ..expressions.check import Unknown
from ..expressions.operands import MOST
from ..images.elf import ElfError, ElfFile, FileSource
from ..images.files import HOST
from ..images.usdt import Site, UsdtProbe, usdt_probes
from ..kernel.tracepoints import fields
from ..measures.events import AskedEvents
from ..probe_targets.events import USDT, Chosen, Events, EventTarget
from .asking import Binder, Compiler, check_target
from .question_options import Printer, refusal

_ANY = UsdtProbe("a", "probe", (Site(0, 0, 0, " ".join(["8@%rax"] * MOST)),))
"""Probe that has all arguments."""


def make_events(events: Events, asked: Asked, chosen: Chosen, *, quiet: bool) -> AskedEvents:
    """StallscopeError for a wrong question, and without bcc. ``quiet``: standard output is for other data."""
    binder = _check_functions(events, asked, chosen)
    _check_tracepoints(asked, chosen)
    for target in events.of_kind(USDT):
        _check_usdt(target, asked)
    find()
    return AskedEvents(
        events, chosen, asked=asked, compiler=Compiler(), show=Printer(to_stderr=quiet).show, binder=binder
    )


def _check_functions(events: Events, asked: Asked, chosen: Chosen) -> Binder | None:
    """Binder that asks debug information, if that is needed."""
    if not events.targets and not chosen.functions:
        return None
    try:
        at_entry(asked)
    except Fault as fault:
        if not isinstance(fault.error, Unknown) or chosen.functions:
            raise refusal(fault) from None
        binder = Binder(asked, fault, lambda parameters: at_entry(asked, parameters))
        for target in events.targets:
            check_target(target, events, binder)
        return binder
    return None


def _check_tracepoints(asked: Asked, chosen: Chosen) -> None:
    """StallscopeError if none of them has what is asked for."""
    bounds = [of_tracepoint(asked, name, fields(name)) for name in chosen.tracepoints]
    faults = [bound for bound in bounds if isinstance(bound, Fault)]
    if faults and len(faults) == len(bounds):
        raise refusal(faults[0])


def _check_usdt(target: EventTarget, asked: Asked) -> None:
    """StallscopeError if no probe has what is asked for; or if a file is given by its path, none of its."""
    probes = [_ANY]
    if len(target.libraries) == 1 and (identity := target.libraries[0].identity):
        path = target.libraries[0].path
        probes = [
            probe
            for probe in _probes(path)
            if target.is_file(path, identity) and target.matches(probe.provider, probe.name)
        ]
    bounds = [at_places(asked, probe) for probe in probes]
    faults = [bound for bound in bounds if isinstance(bound, Fault)]
    if faults and len(faults) == len(bounds):
        raise refusal(faults[0])


def _probes(path: str) -> list[UsdtProbe]:
    """None of a file that cannot be read: event_list.check() has told."""
    try:
        fd = HOST.open_regular(path)
    except (OSError, ValueError):
        return []
    try:
        return usdt_probes(ElfFile(FileSource(fd)))
    except (ElfError, OSError):
        return []
    finally:
        os.close(fd)
