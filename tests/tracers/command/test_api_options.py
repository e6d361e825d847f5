from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.command.api_options import make_wanted

LIBC = next(Path("/lib").glob("*-linux-gnu/libc.so.6"))
NONE: dict[str, Any] = {"api": None, "launches": False, "libraries": (), "symbols": None}


def test_defaults() -> None:
    wanted = make_wanted(NONE)
    assert (wanted.api, wanted.launches, wanted.libraries, wanted.symbols) == (None, False, (), None)


def test_a_library() -> None:
    wanted = make_wanted({**NONE, "libraries": (str(LIBC),), "symbols": "^getenv$"})
    (library,) = wanted.libraries
    assert library.identity == (LIBC.stat().st_dev, LIBC.stat().st_ino)


@pytest.mark.parametrize("given", [{"libraries": ("libc.so.6",)}, {"symbols": "x"}])
def test_library_and_symbols_go_together(given: dict[str, Any]) -> None:
    with pytest.raises(click.UsageError, match="go together"):
        make_wanted({**NONE, **given})


def test_no_expression() -> None:
    with pytest.raises(click.BadParameter, match="not a regular expression"):
        make_wanted({**NONE, "api": "("})


def test_nearest_names() -> None:
    with pytest.raises(StallscopeError) as error:
        make_wanted({**NONE, "libraries": (str(LIBC),), "symbols": "^getenvv$"})
    assert "has no function that '^getenvv$' matches" in error.value.cause
    assert "getenv" in error.value.remedy
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("path", "says"),
    [("/no/such.so", "there is no library"), (__file__, "not an ELF file"), ("/", "^/: not a regular file")],
)
def test_no_library(path: str, says: str) -> None:
    with pytest.raises(StallscopeError, match=says):
        make_wanted({**NONE, "libraries": (path,), "symbols": "x"})


def test_functions_whose_return_cannot_be_watched() -> None:
    libc = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line)
    with pytest.raises(StallscopeError) as caught:
        make_wanted({"api": None, "launches": False, "libraries": (libc,), "symbols": "^_setjmp$"})
    assert "could end the program" in caught.value.cause


def test_no_name_of_a_library() -> None:
    with pytest.raises(click.BadParameter, match="is missing"):
        make_wanted({**NONE, "libraries": ("",), "symbols": "x"})
