"""Python's cycle collector, and when not to run it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Disables Python's cycle collector inside the block: with millions of frames and tuples, which have no cycles, it
    would take as long as everything else."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # Moves all new objects to the oldest generation, so that the next collection does not examine them.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
