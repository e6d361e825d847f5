from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.bcc_compiler.place import HEADERS, find


def test_the_first_folder_that_has_bcc(tmp_path: Path) -> None:
    other, right = tmp_path / "a", tmp_path / "b"
    for folder in (other, right):
        (folder / "bcc").mkdir(parents=True)
        (folder / "bcc" / "__init__.py").touch()
    (right / "bcc" / "libbcc.py").touch()
    assert find((str(tmp_path / "none"), str(other), str(right))) == right / "bcc"
    with pytest.raises(StallscopeError, match="there is no bcc") as caught:
        find((str(other),))
    assert "apt-get install python3-bpfcc" in caught.value.remedy


def test_the_headers_are_there() -> None:
    assert {path.name for path in HEADERS.rglob("*.h")} >= {"kconfig.h", "types.h", "ptrace.h", "page.h", "version.h"}
