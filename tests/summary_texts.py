"""The text of summaries."""

from __future__ import annotations

import io

from stallscope.converters.model import Profile
from stallscope.converters.summary.render import render
from stallscope.converters.summary.summarize import summarize


def shown(profile: Profile, *, width: int | None = None, color: bool | None = None, top: int | None = None) -> str:
    """The whole summary of a profile, as it is printed."""
    out = io.StringIO()
    render(summarize(profile), out, width=width, color=color, top=top)
    return out.getvalue()
