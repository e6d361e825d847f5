"""Memory of communicators that were there before the trace: see `converters.collectives.evidence`."""

from __future__ import annotations

from dataclasses import replace

from .....converters.collectives.communicators import endpoints
from .....converters.collectives.meetings import Member
from .....converters.collectives.records import CallTable
from .....converters.collectives.signatures import NCCL
from ....outside.reads import Memory

BYTES = 256 << 10
"""Bytes that are read of each: what is looked for stands behind the channels, of which there can be 64."""
_PAGE = 4096
_MOST = 256
"""Communicators whose memory is read."""


def with_memory(table: CallTable) -> CallTable:
    """The table with the memory of NCCL's communicators that it does not know, as far as all can be read."""
    unknown = [each for each in endpoints(table) if not each.identity and each.library == NCCL and not each.ended]
    found = {Member(each.pid, each.address): _read(each.pid, each.address) for each in unknown[:_MOST]}
    least = min(map(len, found.values()), default=0)
    return replace(table, memory={member: data[:least] for member, data in found.items()})


def _read(pid: int, address: int) -> bytes:
    """The first bytes, up to the first page that is not there; none if the process has ended."""
    memory, data = Memory(pid), b""
    try:
        while len(data) < BYTES:
            at = address + len(data)
            data += memory.read(at, min(_PAGE - at % _PAGE, BYTES - len(data)))
    except OSError:
        pass
    finally:
        memory.close()
    return data[: len(data) & ~7]
