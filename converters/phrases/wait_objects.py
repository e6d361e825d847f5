"""Words for what a wait is on, to follow the system call. Names are unescaped (hostile)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from ..base.units import count, duration, plural, share, size
from ..facts import thresholds
from ..facts.links import Explains
from ..facts.wait_objects import On
from ..model.group_limits import READ_BYTES, WRITES, WRITTEN_BYTES, GroupLimit
from ..model.wait_objects import (
    DEVICE,
    EVENTS,
    FILE,
    FOLDER,
    LIMIT,
    MEMORY,
    NETWORK,
    PIPE,
    RECLAIM,
    SERVED,
    SWAP,
    TERMINAL,
    UDP,
    UNIX,
    ObjectEnd,
    WaitObject,
)
from ..model.wait_objects import READS as OTHERS_READ

_PATHS = (FILE, FOLDER, DEVICE, TERMINAL)
_MEMORY = (MEMORY, SWAP, LIMIT, RECLAIM)
_OF_MEMORY = {
    MEMORY: " of memory without a file",
    SWAP: " of memory that is read back from swap",
    LIMIT: ", at the memory limit of a control group",
    RECLAIM: ", until memory is freed: the host has too little",
}


def on(found: On | None, own: frozenset[int] = frozenset()) -> str:
    """`` of /srv/data``, ``, for python3 rates.py (pid 12014, 127.0.0.1:9303)``; "" if nothing is known. ``own``: the
    processes that wait."""
    if found is None:
        return ""
    what = found.what
    if what.kind in _MEMORY:
        return _of_memory(found)
    if what.kind in _PATHS:
        return _of_path(found, own) + (_of_disk(found.limit) if found.limit else "")
    if what.kind == PIPE:
        return _of_pipe(what, own)
    if what.kind in NETWORK or what.kind == UNIX:
        return _of_socket(found, own)
    return ""


def _of_path(found: On, own: frozenset[int]) -> str:
    what = found.what
    served = f", which {_whom(what, own)} {'serve' if _are_several(what) else 'serves'}" if what.ends else ""
    if not what.name:
        return f" of a file on {_server(what)}{served}" if _server(what) else ""
    server = f" ({_server(what)}{served})" if _server(what) else ""
    if found.folder and found.number > 1:
        return f" of {count(found.number)} files in {found.folder}{server}"
    before = "the terminal " if what.kind == TERMINAL else ""
    return f" of {before}{what.name}{server}"


def _of_memory(found: On) -> str:
    text = _OF_MEMORY[found.what.kind]
    limit = found.limit
    if limit is None:
        return text
    what = reached(limit)
    if found.what.kind == SWAP:
        return f"{text}, as control group {limit.cgroup} is at its memory limit ({what})"
    return f", at the memory limit of control group {limit.cgroup} ({what})"


def reached(limit: GroupLimit) -> str:
    """``memory.high 64 MiB, reached 3,201 times``"""
    return f"{limit.name} {size(limit.limit)}, reached {_often(limit.used)}"


def _often(number: int) -> str:
    return "once" if number == 1 else f"{count(number)} times"


def _of_disk(limit: GroupLimit) -> str:
    """`` (control group /job may read 10 MiB/s there: io.max rbps, 98 % used)``"""
    in_bytes = limit.kind in (READ_BYTES, WRITTEN_BYTES)
    much = f"{size(limit.limit)}/s" if in_bytes else f"{count(limit.limit)} times a second"
    verb = "write" if limit.kind in (WRITTEN_BYTES, WRITES) else "read"
    used = f"{100 * limit.part_used:.0f} % used"
    return f" (control group {limit.cgroup} may {verb} {much} there: {limit.name}, {used})"


def _server(what: WaitObject) -> str:
    """``NFS nas:/export``, ``FUSE sshfs user@host:``; "" for a file system of this kernel."""
    kind, _, name = what.filesystem.partition(".")
    # Who has no source to tell of often gives the name again.
    source = what.source if what.source not in (kind, name, "none") else ""
    return " ".join(filter(None, (SERVED[kind], name, source))) if kind in SERVED else ""


def _are_several(what: WaitObject) -> bool:
    return len(what.ends) + what.more_ends > 1


def _of_pipe(what: WaitObject, own: frozenset[int]) -> str:
    if what.name:
        return f" of the pipe {what.name}"
    if not what.ends:
        return " of a pipe" if what.does else ""
    whom, several = _whom(what, own), _are_several(what)
    if what.does == OTHERS_READ:
        return f" to a pipe that {whom} {'read' if several else 'reads'}"
    return f" from a pipe into which {whom} {'write' if several else 'writes'}"


def _of_socket(found: On, own: frozenset[int]) -> str:
    what = found.what
    address = what.name if what.kind == UNIX else what.remote
    kind = " (UDP)" if what.kind == UDP else ""
    if what.listens:
        local = what.name if what.kind == UNIX else what.local
        return f" on {local}{kind}" if local else ""
    if found.number > 1:
        number = f", for {count(found.number)} {'UDP sockets' if what.kind == UDP else 'connections'}"
        return f"{number} to {_whom(what, own, address)}" if what.ends or address else number
    if what.ends:
        return f", for {_whom(what, own, address)}{_queue(what)}"
    return f", for {address}{kind}{_queue(what)}" if address else ""


def of_network(found: On | None, whom: str = "") -> str:
    """``; 41 segments of that connection were sent again meanwhile``, or what is told of its link, if that tells why it
    waits; else "". ``whom``: who has the connection, if it is of another wait than that of which the sentence tells."""
    if found is None:
        return ""
    if found.is_resent:
        return _resent(found, whom)
    return _link(found, found.link, whom) if found.link else ""


def _link(found: On, how: Explains, whom: str) -> str:
    """``; a round trip on that connection takes 20 ms, which explains 97 % of the waits``"""
    whose, moves = "that connection", "moves"
    if whom or found.what.kind == EVENTS:
        whose = f"the connection {f'of {whom} ' if whom else ''}to {how.link.remote}"
    elif found.number > 1:
        whose, moves = "these connections", "move"
    trip, rate = duration(how.link.round_trip), f"{size(how.rate)}/s"
    if not how.by_rate:
        text = f"a round trip on {whose} takes {trip}"
    elif not how.by_round_trips:
        text = f"{whose} {moves} {rate}"
    else:
        text = f"{whose} {moves} {rate} with round trips of {trip}"
    waits = f"the {'waits' if found.count > 1 else 'wait'}{' on it' if whom else ''}"
    return f"; {text}, which explains {share(how.time, found.time)} of {waits}"


def _resent(found: On, whom: str) -> str:
    what, whose = found.what, "that connection"
    if whom:
        whose = f"connections of {whom}" if what.kind == EVENTS else f"the connection of {whom} to {what.remote}"
    elif what.kind == EVENTS:
        whose = "its connections"
    elif found.number > 1:
        whose = "these connections"
    were = "was" if what.retransmissions == 1 else "were"
    text = f"; {plural(what.retransmissions, 'segment')} of {whose} {were} sent again meanwhile"
    text += f", most of them of the one to {what.resent_with}" if what.resent_with else ""
    if what.unanswered >= thresholds.MOSTLY * found.time:
        text += f", and for {duration(what.unanswered)} there was no answer"
    return text


def _queue(what: WaitObject) -> str:
    """Words for a connection that is not accepted."""
    if not what.queued:
        return ""
    if what.is_full:
        return f", whose accept queue is full: {count(what.queued)} wait, its backlog is {count(what.backlog)}"
    return f", where {plural(what.queued, 'connection')} {'waits' if what.queued == 1 else 'wait'} to be accepted"


def _whom(what: WaitObject, own: frozenset[int], address: str = "") -> str:
    """``python3 rates.py (pid 12014, 127.0.0.1:9303)``; only the address if nobody is known."""
    if not what.ends:
        return address
    if {end.pid for end in what.ends} <= own and not what.more_ends:
        return "its own process"
    behind = f", {address}" if address else ""
    if len(what.ends) == 1 and not what.more_ends:
        return f"{what.ends[0].process} (pid {what.ends[0].pid}{behind})"
    number = len(what.ends) + what.more_ends
    return f"{count(number)} processes ({_names(what.ends)}{behind})"


def _names(ends: Sequence[ObjectEnd]) -> str:
    """``3 × worker, server``"""
    names = Counter(end.process for end in ends).most_common(thresholds.NAMES_LISTED)
    return ", ".join(f"{number} × {name}" if number > 1 else name for name, number in names)


def short(found: On | None) -> str:
    """Words for a row of a table, with the last parts of a path; "" if nothing is known."""
    if found is None or (found.what.kind in _PATHS and not found.what.name):
        return ""
    if found.what.kind in _PATHS and not found.folder:
        return _last_parts(found.what.name)
    return f"{on(found)}{_short_network(found)}".strip(" ,")


def _short_network(found: On) -> str:
    """``, 41 segments sent again``, ``, a round trip takes 20 ms``, ``, at 12 MiB/s``; "" if that tells nothing."""
    what = found.what
    if found.is_resent:
        return f", {plural(what.retransmissions, 'segment')} sent again"
    if (how := found.link) is None:
        return ""
    return f", at {size(how.rate)}/s" if how.by_rate else f", a round trip takes {duration(how.link.round_trip)}"


def _last_parts(path: str) -> str:
    """``…/target/.cargo-lock``"""
    parts = path.split(os.sep)
    return path if len(parts) <= thresholds.PATH_SHOWN + 1 else os.sep.join(("…", *parts[-thresholds.PATH_SHOWN :]))
