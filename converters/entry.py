"""What the console script calls: little is imported before Ctrl-C can be silent. See `starting`."""

from __future__ import annotations

from .base.starting import run


def convert() -> int:
    """``trace-convert``."""
    return run("stallscope.converters.convert")
