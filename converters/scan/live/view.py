"""The screen as lines of a terminal: the table of verdicts, or the evidence for one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...base.text import printable, shortened
from ...rules.verdict import IDLE, KINDS
from .message import LiveRow, Message
from .state import SORTS, State

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

HELP = (
    ("↑ ↓, j k", "choose a row; Page Up, Page Down, Home, End"),
    ("Enter", "open it: the evidence for its verdict; Escape goes back"),
    ("s, S", f"sort by the next, or the last: {', '.join(SORTS)}"),
    ("r", "reverse the order"),
    ("/", "show only rows with a text in name, verdict, place or pid; Escape: all"),
    ("f, Space", "freeze, and go on with the newest"),
    ("h, ?", "this help"),
    ("q, Ctrl-C", "end"),
)
"""Keys, and what they do."""
_AROUND = 5
"""Lines around the rows of the table: head, answer, names of columns, note, keys."""
_LONG = 20
"""Columns for the name of a process."""
_COLORS = {IDLE: "dim", "cpu": "green", "unclear": "dim", "cores": "yellow", "quota": "yellow"}


def page(height: int) -> int:
    """Rows of the table that fit on a screen."""
    return max(height - _AROUND, 1)


def lines(state: State, width: int, height: int) -> list[Text]:
    """The lines of a screen, at most ``height``, each at most ``width`` columns wide."""
    from rich.text import Text

    found = [_head(state), *_body(state, width, height)][: max(height - 2, 1)]
    found += [Text()] * (height - 2 - len(found))
    found += [_note(state), _keys(state)]
    for line in found:
        line.truncate(width, overflow="ellipsis")
    return found[-height:] if height < len(found) else found


def _head(state: State) -> Text:
    from rich.text import Text

    message = state.message
    if message is None:
        return Text("trace-scan: waiting for the first interval", style="bold")
    frozen = "  FROZEN" if state.is_frozen else ""
    return Text(f"{message.time} {message.length}  {message.head}").append(frozen, style="bold reverse")


def _body(state: State, width: int, height: int) -> list[Text]:
    if state.is_helping:
        return list(_help())
    if state.message is None:
        return []
    if state.is_open:
        return _scrolled(list(_evidence(state.opened, width)), state, height)
    return [_answer(state.message), *_table(state, width, page(height))]


def _scrolled(found: list[Text], state: State, height: int) -> list[Text]:
    state.scrolled = min(state.scrolled, max(len(found) - (height - 3), 0))
    return found[state.scrolled :]


def _help() -> Iterator[Text]:
    from rich.text import Text

    yield Text()
    for keys, what in HELP:
        yield Text(f"{keys:<12}", style="bold").append(what, style="not bold")


def _answer(message: Message) -> Text:
    from rich.text import Text

    return Text(printable(message.answer[0]) if message.answer else "", style="bold")


def _table(state: State, width: int, room: int) -> Iterator[Text]:
    from rich.text import Text

    rows = state.rows()
    place = state.place(rows)
    first = min(max(place - room // 2, 0), max(len(rows) - room, 0))
    names = max(min(_LONG, width // 4), 8)
    heads = (("verdict", 11), ("share", 8), ("cores", 6), ("pid", 8), ("name", names))
    titles = "".join(_fit(name.capitalize(), size) + " " for name, size in heads)
    yield Text(f"  {titles}Where, and who ends it", style="dim")
    for i, row in enumerate(rows[first : first + room], first):
        share = f"{100 * row.share:.1f} %" if row.share is not None else "-"
        number = str(row.pids[0]) if len(row.pids) == 1 else f"{len(row.pids)} ×"
        where = printable(row.where) + (f" ← {printable(row.ended)}" if row.ended else "")
        cells = (row.kind, f"{share:>7}", f"{row.cores:5.2f}", f"{number:>8}", printable(row.name))
        line = Text("> " if i == place else "  ")
        for cell, (_, size) in zip(cells, heads, strict=True):
            line.append(_fit(cell, size) + " ", style=_COLORS.get(row.kind, "red") if cell == row.kind else "")
        line.append(where)
        if i == place:
            line.stylize("reverse")
        yield line
    if not rows:
        yield Text("  no process has this in its name, verdict, place or pid" if state.filter else "  no process")


def _fit(text: str, size: int) -> str:
    """Exactly ``size`` columns."""
    from rich.cells import cell_len, set_cell_size

    return set_cell_size(shortened(text, size) if cell_len(text) > size > 2 else text, size)


def _evidence(row: LiveRow | None, width: int) -> Iterator[Text]:
    from rich.text import Text

    if row is None:
        yield from (Text(), Text("It is not there in this interval. Escape goes back."))
        return
    number = f"{len(row.pids)} × " if len(row.pids) > 1 else ""
    pids = ", ".join(map(str, row.pids[:8])) + (", …" if len(row.pids) > 8 else "")
    yield Text(f"{number}{printable(row.name)} (pid {pids})", style="bold")
    rule = f", rule {row.rule}" if row.rule else ""
    yield Text(f"{row.kind}: {KINDS.get(row.kind, '')}{rule}")
    if row.told:
        yield from Text(printable(row.told), style="bold").wrap(_console(), max(width, 1))
    if row.ended:
        yield Text(f"ended by {printable(row.ended)}")
    if row.threads:
        heads = f"{_fit('Thread', 18)} {'tid':>8} {'Run':>8} {'Runnable':>8} {'Blocked':>8}  Mostly in"
        yield from (Text(), Text(heads, style="dim"))
        for name, tid, runs, runnable, blocked, where in row.threads:
            cells = f"{tid:>8} {runs:>8} {runnable:>8} {blocked:>8}"
            yield Text(f"{_fit(printable(name), 18)} {cells}  {printable(where)}")
        if row.more_threads:
            yield Text(f"and {row.more_threads} more", style="dim")
    if row.stack or row.kernel:
        yield from (Text(), Text("Stack, the innermost first", style="dim"))
        if row.kernel:
            yield Text(f"  kernel: {' ← '.join(printable(name) for name in reversed(row.kernel))}", style="dim")
        yield from (Text(f"  {printable(name)}") for name in reversed(row.stack))


def _note(state: State) -> Text:
    from rich.text import Text

    if state.is_typing:
        return Text(f"/{printable(state.filter)}", style="bold").append("█")
    told = [*(state.message.notes if state.message else ()), *state.notes[-1:]]
    return Text(" | ".join(map(printable, told)), style="yellow")


def _keys(state: State) -> Text:
    from rich.text import Text

    if state.is_typing:
        return Text("Enter: keep this filter  Escape: show all", style="dim")
    if state.is_open:
        return Text("Escape back  ↑ ↓ scroll  f freeze  q quit  h help", style="dim")
    order = f"{state.sort}{', reversed' if state.is_reversed else ''}"
    filtered = f" ({printable(state.filter)})" if state.filter else ""
    return Text(f"s sort ({order})  / filter{filtered}  Enter open  f freeze  q quit  h help", style="dim")


def _console() -> Console:
    from rich.console import Console

    return Console(width=80)
