from __future__ import annotations

import subprocess
import sys

from stallscope.converters.names import demangle_worker


def test_a_line_for_a_line() -> None:
    command = [sys.executable, "-I", "-m", demangle_worker.__name__, "9"]
    request = b"_Z1av\nplain\n_Zbad\n\n_Z20abcdefghijabcdefghijv\n\xff\xfe"
    answer = subprocess.run(command, input=request, capture_output=True, check=True).stdout
    assert answer.split(b"\n") == [b"a()", b"plain", b"", b"", b"abcdefghi", b"", b""]
