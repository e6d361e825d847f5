"""Reading what a workload prints."""

from __future__ import annotations

from typing import Any

MS = 1_000_000


def by_function(truth: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The waits of a workload by the function that waits."""
    waits = {wait["function"]: wait for wait in truth["waits"]}
    assert len(waits) == len(truth["waits"])
    return waits
