"""Form of an answer, in the data of our own that a profile carries: see `converters.pprof.metadata`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..model.display import BY, CallsView, Display
from ..model.next_step import NextStep, Whom
from .recommended import is_recommended

_MOST_WORDS, _LONGEST = 64, 4096
_NEW = {"left_out": 0, "needs_module": False}
"""Fields of a step that earlier versions do not write."""
_MOST_ROWS = 1 << 31


def encoded(display: Display) -> dict[str, Any]:
    """Data that JSON can hold, for `decoded`."""
    step = display.next_step
    told = None
    if step is not None:
        told = {**step._asdict(), "whom": step.whom._asdict()}
        # Versions that do not know these refuse them.
        told = {name: value for name, value in told.items() if value or name not in _NEW}
    return {"view": asdict(display.view), "shows_idle": display.shows_idle, "next_step": told}


def decoded(entry: Any) -> Display:
    """The inverse. ValueError for anything else. A step that these commands do not recommend is left out."""
    parts = _members(entry, "view", "shows_idle", "next_step")
    step = None if parts["next_step"] is None else _step(parts["next_step"])
    shown = step if step and is_recommended(step) else None
    return Display(_view(parts["view"]), _truth(parts["shows_idle"]), shown)


def _view(entry: Any) -> CallsView:
    parts = _members(entry, "sort", "by", "rows", "histograms", "places")
    _require(parts["by"] in BY)
    rows, histograms = (None if parts[name] is None else _number(parts[name]) for name in ("rows", "histograms"))
    return CallsView(_text(parts["sort"]), parts["by"], rows, histograms, _truth(parts["places"]))


def _step(entry: Any) -> NextStep:
    _require(isinstance(entry, dict))
    parts = _members({**_NEW, **entry}, *NextStep._fields)
    whom = _members(parts["whom"], *Whom._fields)
    return NextStep(
        _text(parts["tool"]),
        Whom(_words(whom["options"]), _words(whom["command"])),
        _words(parts["options"]),
        _text(parts["tells"]),
        _words(parts["first"]),
        _truth(parts["sudo"]),
        _number(parts["left_out"]),
        _truth(parts["needs_module"]),
    )


def _members(entry: Any, *names: str) -> dict[str, Any]:
    _require(isinstance(entry, dict) and entry.keys() == {*names})
    found: dict[str, Any] = entry
    return found


def _words(value: Any) -> tuple[str, ...]:
    _require(isinstance(value, list) and len(value) <= _MOST_WORDS)
    return tuple(map(_text, value))


def _text(value: Any) -> str:
    _require(isinstance(value, str) and len(value) <= _LONGEST)
    return str(value)


def _truth(value: Any) -> bool:
    _require(isinstance(value, bool))
    return bool(value)


def _number(value: Any) -> int:
    _require(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_ROWS)
    return int(value)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("how the answer was shown")
