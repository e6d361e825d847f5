"""Processes that are sampled: those of the scope, and what they fork during the trace."""

from __future__ import annotations

import os
from collections.abc import Collection

from ...base import procfs
from ...base.launch import Launch
from ...base.scope import Scope


class Following:
    """Looks for processes now and then.

    A process that was there at an earlier look, and was not traced then, was not forked by a traced one since: it stays
    out, also if it becomes the child of a traced process because its parent has ended.
    """

    def __init__(self, scope: Scope, launch: Launch | None) -> None:
        """The trace begins now. All that a launched command has forked was forked during the trace."""
        self._scope, self._launch = scope, launch
        self._known: dict[int, procfs.Origin] = {} if launch else procfs.origins()
        self._traced: dict[int, procfs.Origin] = {}
        self._is_first = True

    def look(self) -> set[int]:
        """The processes to sample now."""
        scope = self._scope
        out_before = set(scope.left_out)
        ours = {os.getpid(), *scope.ours}
        named = self._named() - ours
        table = procfs.origins()
        self._traced = {pid: table[pid] for pid, old in self._traced.items() if _is_same(table.get(pid), old)}
        self._traced |= {pid: table[pid] for pid in named & table.keys()}
        if scope.children and not scope.tids:
            self._adopt(table, (scope.left_out.keys() - out_before) | ours)
        self._known = table
        return set(self._traced)

    def _named(self) -> set[int]:
        """Processes that the user has named and that were not told before."""
        scope = self._scope
        new = scope.newcomers()
        scope.tgids |= new
        if self._is_first:
            self._is_first = False
            new = {self._launch.pid} if self._launch else set(scope.tgids)
        return new | {tgid for tid in scope.tids if (tgid := procfs.tgid_of(tid)) is not None}

    def _adopt(self, table: dict[int, procfs.Origin], without: Collection[int]) -> None:
        """Takes in what traced processes have forked since the look before, and what these have forked."""
        fresh: dict[int, list[int]] = {}
        for pid, origin in table.items():
            if pid not in without and not _is_same(self._known.get(pid), origin):
                fresh.setdefault(origin.parent, []).append(pid)
        pending = list(self._traced)
        while pending:
            new = [pid for pid in fresh.get(pending.pop(), ()) if pid not in self._traced]
            self._traced |= {pid: table[pid] for pid in new}
            pending += new


def _is_same(one: procfs.Origin | None, other: procfs.Origin) -> bool:
    """Whether they are of one process: parents can change."""
    return one is not None and one.began == other.began
