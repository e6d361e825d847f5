from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.bcc_compiler.compiler import compile_c

GOOD = """
__version__ = "9.9"
print("noise")
class BPF:
    def __init__(self, text):
        assert text == "int f;"
    def dump_func(self, name):
        return name.ljust(16, b"\\0")
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "bcc"
    folder.mkdir()
    return folder


def compiled(module: Path, code: str, seconds: float = 60) -> dict[str, bytes]:
    (module / "__init__.py").write_text(code)
    return compile_c("int f;", ["f", "g"], folder=module, seconds=seconds).programs


def test_programs_come_back(module: Path) -> None:
    assert compiled(module, GOOD) == {"f": b"f".ljust(16, b"\0"), "g": b"g".ljust(16, b"\0")}


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import no_such_module", "bcc cannot be loaded: ModuleNotFoundError"),
        ("raise OSError('libbcc.so.0')", "bcc cannot be loaded: OSError: libbcc.so.0"),
        (
            "__version__ = '0.8'\nclass BPF:\n    def __init__(self, text): raise Exception('no')",
            "bcc 0.8 does not compile",
        ),
        ("__version__ = '0.8'\nclass BPF:\n    def __init__(self, text): pass", "bcc 0.8 does not compile"),
        ("import os; os.abort()", "bcc ended with status -6"),
        ("import os; os.write(3, b'x'); os._exit(0)", "bcc ended with status"),
        (GOOD.replace("16", "15"), "has made no programs"),
        (GOOD.replace('name.ljust(16, b"\\0")', "b''"), "has made no programs"),
    ],
)
def test_what_fails_is_one_line(module: Path, code: str, cause: str) -> None:
    with pytest.raises(StallscopeError) as caught:
        compiled(module, code)
    assert cause in caught.value.cause
    assert "\n" not in caught.value.cause
    assert caught.value.remedy


def test_a_compiler_that_is_killed(module: Path) -> None:
    with pytest.raises(StallscopeError, match=r"^bcc was ended by SIGKILL") as caught:
        compiled(module, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert caught.value.remedy == "the machine may be out of memory: dmesg says so"


def test_a_compiler_that_hangs(module: Path) -> None:
    with pytest.raises(StallscopeError, match="did not compile within"):
        compiled(module, "import time; time.sleep(100)", seconds=0.5)


def test_the_message_of_the_compiler_is_told(module: Path) -> None:
    begin = "import sys\nclass BPF:\n    def __init__(self, text):\n"
    code = f"{begin}        print('main.c:1: error: bad', file=sys.stderr)\n        raise Exception"
    with pytest.raises(StallscopeError, match="error: bad") as caught:
        compiled(module, code)
    assert "error: bad" in caught.value.details
