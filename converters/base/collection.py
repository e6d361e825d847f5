"""Python's cycle collector, and when not to run it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Disables Python's cycle collector meanwhile: with millions of frames and tuples, which have no cycles, it takes
    as long as everything else."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # What was made is not looked at next, either: this makes all of it old without looking.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
