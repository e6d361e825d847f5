"""The state of the screen: what is sorted, filtered, opened and frozen, and what keys do to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...base.text import printable
from ...rules.verdict import IDLE
from .message import LiveRow, Message

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END, ENTER, ESCAPE, BACKSPACE = (
    *("up", "down", "page up", "page down", "home", "end"),
    *("enter", "escape", "backspace"),
)
"""Names of keys that are no character."""
LONGEST_FILTER = 60
"""Characters."""
_KEYS: Mapping[str, Callable[[LiveRow], object]] = {
    "verdict": lambda row: (row.kind == IDLE, -row.score, -row.cores),
    "share": lambda row: -(row.share or 0.0),
    "cores": lambda row: -row.cores,
    "kind": lambda row: row.kind,
    "name": lambda row: row.name,
    "pid": lambda row: row.pids,
}
SORTS = tuple(_KEYS)
"""Orders of rows: by what would be saved, and by columns."""


@dataclass
class State:
    """State of the screen. Keys change it, and new intervals."""

    message: Message | None = None
    sort: str = SORTS[0]
    is_reversed: bool = False
    filter: str = ""
    """Part of the names, verdicts, places and ids of what is shown."""
    is_typing: bool = False
    """Whether keys go into the filter."""
    selected: tuple[str, int] = ("", 0)
    """Name and first process of the selected row: it stays selected when rows move."""
    is_open: bool = False
    """Whether the selected row is shown alone, with its evidence."""
    scrolled: int = 0
    """Lines of the evidence above the screen."""
    is_helping: bool = False
    is_frozen: bool = False
    waiting: Message | None = None
    """The newest interval, while another one is frozen."""
    is_done: bool = False
    notes: list[str] = field(default_factory=list)
    """Lines that the tracer said last."""

    def take(self, message: Message) -> None:
        """Takes in a new interval."""
        if self.is_frozen:
            self.waiting = message
        else:
            self.message = message

    def rows(self) -> list[LiveRow]:
        """Rows in their order, those that the filter leaves."""
        found = [row for row in (self.message.rows if self.message else ()) if self._passes(row)]
        return sorted(found, key=_KEYS[self.sort], reverse=self.is_reversed)  # type: ignore[arg-type]  # of one type

    def _passes(self, row: LiveRow) -> bool:
        text = "\n".join(map(printable, (row.name, row.kind, row.where, row.ended))).lower()
        return self.filter.lower() in text or self.filter in map(str, row.pids)

    def place(self, rows: list[LiveRow]) -> int:
        """Index of the selected row: of the same processes, or else the first one."""
        keys = [_key(row) for row in rows]
        if self.selected in keys:
            return keys.index(self.selected)
        pids = {row.pids[0]: place for place, row in reversed(list(enumerate(rows))) if row.pids}
        return pids.get(self.selected[1], 0)

    @property
    def opened(self) -> LiveRow | None:
        """The row that is shown alone, as it is in the present interval; None: the table is shown, or it is gone."""
        rows = self.message.rows if self.message else []
        return next((row for row in rows if self.selected[1] in row.pids), None) if self.is_open else None

    def press(self, key: str, page: int = 10) -> None:
        """A key was pressed. ``page``: rows that the screen has."""
        if self.is_typing:
            self._type(key)
        elif key in ("q", "Q"):
            self.is_done = True
        elif key in ("h", "?"):
            self.is_helping = not self.is_helping
        elif self.is_helping:
            self.is_helping = False
        elif key in ("f", " "):
            self._freeze()
        elif self.is_open:
            self._press_opened(key, page)
        else:
            self._press_table(key, page)

    def _type(self, key: str) -> None:
        if key == ENTER:
            self.is_typing = False
        elif key == ESCAPE:
            self.is_typing, self.filter = False, ""
        elif key == BACKSPACE:
            self.filter = self.filter[:-1]
        elif len(key) == 1 and key.isprintable() and len(self.filter) < LONGEST_FILTER:
            self.filter += key

    def _freeze(self) -> None:
        self.is_frozen = not self.is_frozen
        if not self.is_frozen and self.waiting:
            self.message, self.waiting = self.waiting, None

    def _press_opened(self, key: str, page: int) -> None:
        if key in (ESCAPE, BACKSPACE, ENTER):
            self.is_open, self.scrolled = False, 0
            return
        moves = {UP: -1, "k": -1, DOWN: 1, "j": 1, PAGE_UP: -page, PAGE_DOWN: page, HOME: -self.scrolled}
        self.scrolled = max(self.scrolled + moves.get(key, 0), 0)

    def _press_table(self, key: str, page: int) -> None:
        rows = self.rows()
        place = self.place(rows)
        moves = {UP: -1, "k": -1, DOWN: 1, "j": 1, PAGE_UP: -page, PAGE_DOWN: page, HOME: -place, END: len(rows)}
        if key == "/":
            self.is_typing = True
        elif key == ESCAPE:
            self.filter = ""
        elif key in ("s", "S"):
            self.sort = SORTS[(SORTS.index(self.sort) + (1 if key == "s" else -1)) % len(SORTS)]
        elif key == "r":
            self.is_reversed = not self.is_reversed
        elif key in moves and rows:
            self.selected = _key(rows[min(max(place + moves[key], 0), len(rows) - 1)])
        elif key == ENTER and rows:
            self.selected, self.is_open, self.scrolled = _key(rows[place]), True, 0


def _key(row: LiveRow) -> tuple[str, int]:
    return row.name, row.pids[0] if row.pids else 0
