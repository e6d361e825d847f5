"""Folder in which the system has bcc's Python module: that alone, whichever Python runs us.

Of the package called ``bcc`` at PyPI, which is something else, nothing is used: its folder has no libbcc.py.
"""

from __future__ import annotations

from pathlib import Path

from ...converters.base.errors import StallscopeError

HEADERS = Path(__file__).with_name("headers")
"""Folder in place of a kernel's source: what bcc's own headers include, and no more."""
INSTALL = "apt-get install python3-bpfcc; elsewhere the package is called python3-bcc or bcc"
_FOLDERS = (
    "/usr/lib/python3/dist-packages",
    "/usr/local/lib/python3/dist-packages",
    *(f"/usr/lib/python3.{minor}/site-packages" for minor in range(14, 8, -1)),
    *(f"/usr/lib64/python3.{minor}/site-packages" for minor in range(14, 8, -1)),
)


def find(folders: tuple[str, ...] = _FOLDERS) -> Path:
    """The folder of the module. StallscopeError without one."""
    for folder in folders:
        found = Path(folder) / "bcc"
        if (found / "__init__.py").is_file() and (found / "libbcc.py").is_file():
            return found
    raise StallscopeError("there is no bcc, which compiles BPF programs", INSTALL)
