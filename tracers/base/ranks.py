"""The rank of a process, and its GPUs: see `converters.model.ranks`."""

from __future__ import annotations

import os
import re
from itertools import islice

from ...converters.model.ranks import GPU, LONGEST, VARIABLES, label_of
from .procfs import PROC

_LABELS = {variable.encode(): label_of(variable) for variable in VARIABLES}
_DEVICE = re.compile(r"/dev/nvidia([0-9]{1,4})")
_FILES = 512
"""Maximum number of open files that are looked at."""
_MOST = 16
"""Maximum number of GPUs that are named."""
_UNPRINTABLE = re.compile(rb"[^\x20-\x7e]")


def ranks_in(environment: bytes) -> dict[str, str]:
    """The values of `VARIABLES` in the bytes of /proc/PID/environ, by label; printable, and of bounded length.

    Nothing else of the environment is kept.
    """
    found: dict[str, str] = {}
    for entry in environment.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        label = _LABELS.get(name)
        if label and equals and value:
            kept = value if len(value) <= LONGEST else value[: LONGEST - 3] + b"..."
            found.setdefault(label, _UNPRINTABLE.sub(b"?", kept).decode("ascii"))  # getenv(3) takes the first
    return found


def gpus_of(pid: int) -> dict[str, str]:
    """The minors of the GPUs whose devices the process has open, as a label; empty without any."""
    minors: set[int] = set()
    try:
        with os.scandir(PROC / str(pid) / "fd") as files:
            for file in islice(files, _FILES):
                try:
                    match = _DEVICE.fullmatch(os.readlink(file.path))
                except OSError:
                    continue  # closed meanwhile
                if match:
                    minors.add(int(match[1]))
    except OSError:
        return {}
    return {GPU: ",".join(map(str, sorted(minors)[:_MOST]))} if minors else {}
