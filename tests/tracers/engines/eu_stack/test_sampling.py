"""Times at which samples are taken; the rest with the engine: test_engine.py."""

from __future__ import annotations

import pytest
from stallscope.tracers.engines.eu_stack.sampling import pause_after


@pytest.mark.parametrize("took", [0.0, 0.01, 0.04, 0.06, 0.5])
def test_pauses(took: float) -> None:
    pauses = [pause_after(took, 0.1, chance / 100) for chance in range(101)]
    assert min(pauses) >= took, "half of the time at most"
    assert max(pauses) > 1.4 * min(pauses), "they differ"
    if took < 0.03:
        assert took + sum(pauses) / len(pauses) == pytest.approx(0.1), "the rate is kept"
