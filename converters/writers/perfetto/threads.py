"""Processes and threads with their names: those at the beginning of the trace, and each one created later."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...model.scheduling import Array
from . import wire
from .context import CORES, Context, packet, packets

_PROCESS_TREE = 2
_PROCESSES, _THREADS = 1, 2
_PID, _PPID, _CMDLINE = 1, 2, 3
_TID, _NAME, _TGID = 1, 2, 3


def process_trees(context: Context) -> Iterator[bytes]:
    """Packets, by time. A thread that is created later gets its own packet, just after its creation."""
    scheduling = context.scheduling
    threads = scheduling.threads
    later = threads["begin"] > scheduling.begin
    for part in wire.parts(int((~later).sum())):
        tree = b"".join(column.bytes() for column in _described(context, threads[~later][part], with_all=True))
        yield packet(CORES, wire.text(_PROCESS_TREE, tree), time=int(context.time(np.int64(scheduling.begin))))
    made = threads[later]
    made = made[np.argsort(made["begin"], kind="stable")]
    for part in wire.parts(len(made)):
        times = context.time(made["begin"][part] + 1)
        yield packets(CORES, times, [wire.messages(_PROCESS_TREE, _described(context, made[part]))])


def _described(context: Context, threads: Array, *, with_all: bool = False) -> list[wire.Column]:
    """The process of each thread that is the first of its process, then the thread.

    ``with_all``: also processes whose first thread is missing but which another thread names.
    """
    first = threads["tid"] == threads["tgid"]
    if with_all:
        _, places = np.unique(threads["tgid"], return_index=True)
        first = np.zeros(len(threads), bool)
        first[places] = True
    processes = wire.messages(
        _PROCESSES,
        [
            wire.numbers(_PID, threads["tgid"]),
            wire.numbers(_PPID, _parents(context, threads)),
            wire.chosen(_command_lines(context), threads["process"]),
        ],
    )
    named = wire.messages(
        _THREADS,
        [
            wire.numbers(_TID, threads["tid"]),
            wire.texts(_NAME, context.names, threads["name"]),
            wire.numbers(_TGID, threads["tgid"]),
        ],
    )
    return [wire.where(first, processes), named]


def _command_lines(context: Context) -> list[bytes]:
    """A name with a space gets an empty second argument: the viewer cuts a single one at the first space."""
    ending = wire.text(_CMDLINE, b"")
    return [wire.text(_CMDLINE, name) + (ending if b" " in name else b"") for name in context.names]


def _parents(context: Context, threads: Array) -> Array:
    """The process that created the process of each thread; 0 when unknown."""
    scheduling, known = context.scheduling, context.known
    created = scheduling.created
    rows = known.rows(created["tid"], created["time"])
    makers = known.rows(created["parent"], created["time"])
    usable = (rows >= 0) & (makers >= 0)
    found = np.zeros(len(scheduling.threads), np.int64)
    found[rows[usable]] = scheduling.threads["tgid"][makers[usable]]
    leaders = known.rows(threads["tgid"], np.maximum(threads["begin"], scheduling.begin))
    return np.where(leaders >= 0, found[leaders], 0)
