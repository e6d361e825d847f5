"""Fixtures for the tests of the tracers."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from stallscope.tracers.core import privilege

Require = Callable[[bool, str], None]


@pytest.fixture
def root(require: Require) -> None:
    """Skips where BPF cannot be used; with REQUIRE_LIVE=1 fails there."""
    require(privilege.allowed(), "this needs root")


@pytest.fixture
def clang(require: Require) -> str:
    """The compiler of BPF programs."""
    found = shutil.which("clang")
    require(found is not None, "there is no clang")
    return str(found)


@pytest.fixture
def gcc(require: Require) -> str:
    """The compiler of the machine."""
    found = shutil.which("gcc")
    require(found is not None, "there is no gcc")
    return str(found)
