"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# How long something takes says more of the machine than of the code.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def require() -> Callable[[bool, str], None]:
    """``require(condition, reason)``: skips the test where it cannot run, fails it with REQUIRE_LIVE=1."""

    def check(condition: bool, reason: str) -> None:
        if condition:
            return
        if os.environ.get("REQUIRE_LIVE") == "1":
            pytest.fail(f"REQUIRE_LIVE=1, but {reason}", pytrace=False)
        pytest.skip(reason)

    return check
