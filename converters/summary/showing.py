"""Shows an answer: at the end of a trace, or again from its capture."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TextIO

from ..base.errors import StallscopeError
from ..model import Profile
from ..model.display import USUAL, Display
from .calls_view import SORTS
from .figures import Summary
from .summarize import summarize


def answer_of(profile: Profile) -> Summary:
    """The answer of a capture as the trace showed it. StallscopeError like `summarize`, and for a profile whose samples
    have lost their processes."""
    check_processes(profile)
    return as_shown(summarize(profile), profile)


def check_processes(profile: Profile) -> None:
    """StallscopeError for a profile whose samples have lost their processes."""
    if not profile.threads or not profile.samples:
        return
    if not any(key == "pid" for each in profile.samples for key, _ in each.labels):
        raise StallscopeError(
            "the processes of this profile were merged: it is not known who waits",
            "name the captures from which it was made: --answer --merge takes them, too",
        )


def as_shown(summary: Summary, profile: Profile) -> Summary:
    """``summary``, that of ``profile``, in the form in which the trace showed it, with what that recommended."""
    display = profile.display or Display()
    step = display.next_step if profile.display else summary.next_step
    if step:  # a file may come from anyone, and people run what is recommended
        step = step.without_command()
    view = display.view if display.view.sort in SORTS else USUAL
    return replace(summary, view=view, shows_idle=display.shows_idle, next_step=step)


def show(summary: Summary, stream: TextIO, *, as_json: bool, indent: int | None = 2, whole: bool = False) -> None:
    """Prints it: for people, or as JSON. ``whole``: all rows of the tables."""
    if as_json:
        json.dump(summary.to_json(), stream, indent=indent)
        print(file=stream)
    else:
        from .fitting import TOP
        from .render import render

        render(summary, stream, top=TOP if whole else None)
    stream.flush()
