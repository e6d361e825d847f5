"""The process that reads debug information: ``-m``, with the file's descriptor, and what is wanted on standard input.

The file may have been made to break it, or to use up memory and time: it has no rights, and limits.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from types import FrameType
from typing import Any

from ...converters.base.confining import confine

_MEMORY, _OWN_MEMORY, _PER_BYTE = 6 << 30, 256 << 20, 16
"""Bytes: pyelftools reads whole sections, and those of a large library have gigabytes. A small file gets less: what
it unpacks to, or claims to have, is not worth more."""
_BLOCK = 512
"""Bytes of a block of st_blocks."""


def import_all() -> None:
    """Imports what `read` needs, before there are no rights to read it."""
    import elftools.elf.elffile

    from . import reading

    del elftools, reading


def read(fd: int, wanted: dict[str, Any]) -> dict[str, Any]:
    """``functions`` and ``types``, else ``fault``."""
    from elftools.elf.elffile import ELFFile

    from .reading import Reader

    try:
        with open(fd, "rb", closefd=False) as file:
            elf = ELFFile(file)
            if not any(elf.get_section_by_name(name) for name in (".debug_info", ".zdebug_info")):
                return {"fault": "it has no debug information"}
            reader = Reader(elf.get_dwarf_info(), frozenset(wanted["members"]), wanted["seconds"])
            functions = reader.functions(wanted["addresses"])
            return {"functions": functions, "types": {str(number): kind for number, kind in reader.types.items()}}
    except (TimeoutError, OutOfTime):
        return {"fault": "its debug information takes too long to read"}
    except MemoryError:
        return {"fault": "its debug information is too large"}
    except Exception as error:  # what a damaged file makes pyelftools raise
        return {"fault": f"its debug information is damaged: {type(error).__name__}"}


class OutOfTime(BaseException):
    """End of the time to read. No Exception: pyelftools makes others of those."""


def limit_time(seconds: float) -> None:
    """`OutOfTime` after so long on a core: pyelftools has loops whose length the file says. 0: no more."""

    def stop(_: int, __: FrameType | None) -> None:
        raise OutOfTime

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def memory(fd: int) -> int:
    """Bytes that the reading of this file may take: by what it has on disk, without holes."""
    return min(_MEMORY, _OWN_MEMORY + _PER_BYTE * _BLOCK * os.fstat(fd).st_blocks)


if __name__ == "__main__":
    import_all()
    wanted = json.load(sys.stdin)
    seconds = int(wanted["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    most = memory(int(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    limit_time(float(wanted["seconds"]))
    confine()
    json.dump(read(int(sys.argv[1]), wanted), sys.stdout)
