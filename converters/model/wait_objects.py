"""Objects of waits: the file, pipe, socket or device of a system call's descriptor, and who has its other end; the file
that is mapped, or the memory, where a page fault is.

A sample of such a wait has the label `LABEL` with the object's number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LABEL = "object"

FILE, FOLDER, DEVICE, TERMINAL, PIPE = "file", "folder", "device", "terminal", "pipe"
TCP, UDP, UNIX, SOCKET = "TCP", "UDP", "Unix socket", "socket"
EVENTS, OTHER = "events", "other"
MEMORY, SWAP, LIMIT, RECLAIM = "memory", "swap", "memory limit", "free memory"
NFS_SERVER, FUSE_SERVER = "NFS server", "FUSE server"
"""Kinds. `SOCKET`: of another family; `EVENTS`: an epoll descriptor with several targets; `OTHER`: an eventfd, a timer
…; `MEMORY`: memory of a process that no file is mapped to; the others are told by the kernel's functions alone: `SWAP`:
memory that is read back; `LIMIT`: memory of a control group at its limit; `RECLAIM`: of a host that has too little;
`NFS_SERVER`, `FUSE_SERVER`: who answers for a file system, where the file is not known."""
SERVED = {"nfs": "NFS", "nfs4": "NFS", "fuse": "FUSE", "fuseblk": "FUSE", "9p": "9P", "cifs": "SMB", "smb3": "SMB",
          "smb": "SMB", "smb2": "SMB", "ceph": "Ceph", "lustre": "Lustre", "gpfs": "GPFS", "afs": "AFS",
          "beegfs": "BeeGFS"}  # fmt: skip
"""Types of file systems that a server or another process answers for, and their usual names. A type of FUSE goes on
behind a point: ``fuse.sshfs``."""
NETWORK = (TCP, UDP)
WITH_ENDS = (PIPE, UNIX, TCP, UDP)
"""Kinds that have another end."""

READS, WRITES = "reads", "writes"


@dataclass(slots=True)
class ObjectEnd:
    """A process that has the other end."""

    process: str
    """Name of the process, with the script that it runs (hostile)."""
    pid: int


@dataclass(slots=True)
class ObjectPeer:
    """A process to which an epoll descriptor has connections."""

    process: str
    """Name of the process, with the script that it runs (hostile)."""
    pid: int
    kind: str
    """`TCP`, `UNIX` or `PIPE`."""
    address: str
    """Address of it, of one of the connections; the path of a Unix socket (hostile); "" if it has none."""
    number: int
    """Number of connections to it."""
    serves: bool = False
    """Whether it listens at this address: it answers what it is asked there."""


@dataclass(slots=True)
class Link:
    """A TCP connection as TCP itself sees it, in the time of the trace. Times in ns."""

    remote: str
    """Address and port of the other end."""
    round_trip: int
    """Least time from a segment to its acknowledgement that an end on this host has measured in the last minutes."""
    smoothed: int
    """Mean of these times of late at the end that sends, with the time in queues."""
    arrivals: int
    """Segments with data that came."""
    busy: int
    """Time for which something was under way that was not acknowledged, from the end that sends."""
    window_full: int
    """Part of ``busy`` in which whoever was to read there did not."""
    sent: int
    """Bytes that were acknowledged."""
    rate: int
    """Bytes a second: measured when there was more to send, or the most that was measured."""
    segment: int
    """Most bytes of a segment."""
    has_more: bool
    """Whether there was more to send than was under way, when it was looked at, or when ``rate`` was measured."""


@dataclass(slots=True)
class WaitObject:
    """A file, pipe, socket or device. Of a socket's address, a port follows a colon, as in ``[::1]:80``."""

    id: int
    kind: str
    """One of those above."""
    name: str = ""
    """The path of a file, or of a Unix socket (hostile); "" if it is not known."""
    filesystem: str = ""
    """The name of the file system's type, as mount(8) has it; "" if it is not known."""
    device: str = ""
    """Number of the file system, as in /proc/self/mountinfo."""
    inode: int = 0
    local: str = ""
    """Address and port of a socket's own end."""
    remote: str = ""
    """Address and port of the other end; "" if it has none."""
    listens: bool = False
    """A socket that waits for connections."""
    does: str = ""
    """`READS` or `WRITES`: what those who have the other end of a pipe do with it."""
    ends: list[ObjectEnd] = field(default_factory=list)
    """Processes with the other end; at most `MOST_ENDS`."""
    more_ends: int = 0
    queued: int = 0
    """Connections that wait until the process at the other end accepts them, or until those who have the socket do."""
    backlog: int = 0
    """Maximum of these; 0: it is not known."""
    peers: list[ObjectPeer] = field(default_factory=list)
    """Processes to which `EVENTS` have connections, those with most first; at most `MOST_PEERS`."""
    mapped: bool = False
    """Whether it is mapped where a page fault was, and not what a descriptor is for. False in old captures."""
    retransmissions: int = 0
    """Segments that TCP has sent again during the trace, from either end on this host: on this connection, or of
    `EVENTS`, on all of its connections. 0 in old captures."""
    unanswered: int = 0
    """Time in ns for which TCP sent again and again on the connection, and no answer came."""
    resent_with: str = ""
    """Address and port of the other end of the connection of `EVENTS` with most of these segments."""
    links: list[Link] = field(default_factory=list)
    """TCP's own figures of the connection, or of those of `EVENTS` on which most happens; at most `MOST_LINKS`. [] for
    connections within the host, for those of which nothing is known, and in old captures."""
    source: str = ""
    """Source of the mount, of file systems of `SERVED`: ``nas:/export``, ``user@host:`` (hostile); "" if it is not
    known, of others, and in old captures."""

    @property
    def is_full(self) -> bool:
        """Whether a connection more is not taken: sk_acceptq_is_full() of include/net/sock.h."""
        return 0 < self.backlog < self.queued


MOST_ENDS, MOST_PEERS, MOST_LINKS = 8, 32, 8


def label(number: int) -> int:
    """Returns the number of an object in a profile, of its number in the kernel: what pprof can hold."""
    return number & (1 << 63) - 1
