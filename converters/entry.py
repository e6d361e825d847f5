"""Entry point of the console script: little is imported before Ctrl-C is silent. See `starting`."""

from __future__ import annotations

from .base.starting import run


def convert() -> int:
    """``trace-convert``."""
    return run("stallscope.converters.convert")
