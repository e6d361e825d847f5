"""Every interpreter of this machine."""

from __future__ import annotations

import pytest
from pythons import interpreters


@pytest.fixture(params=list(interpreters()))
def python(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """A command that runs an interpreter."""
    return interpreters()[request.param]
