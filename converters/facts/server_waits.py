"""Waits for the servers of file systems, by the kernel's functions on the stack: for NFS servers, and for processes of
this host that serve FUSE file systems. So much is known also of calls without a descriptor: open(), stat(), rename().
"""

from __future__ import annotations

from ..model import Stack
from ..model.wait_objects import FILE, FUSE_SERVER, NFS_SERVER, WaitObject

_NFS, _FUSE, _FUSE_FILE = -5, -6, -7
OF_SERVERS = {
    _NFS: WaitObject(_NFS, NFS_SERVER),
    _FUSE: WaitObject(_FUSE, FUSE_SERVER),
    _FUSE_FILE: WaitObject(_FUSE_FILE, FILE, "", "fuse"),
}
"""Objects of such waits, by numbers that no recorded one has."""
_FUNCTIONS = {
    "rpc_wait_bit_killable": _NFS,  # net/sunrpc/sched.c: for the end of a remote call
    "nfs_wait_bit_killable": _NFS,  # fs/nfs/inode.c: for attributes that another thread asks for, and others
    "nfs_wait_on_request": _NFS,  # fs/nfs/pagelist.c: for a page that is being written
    "nfs4_delay_killable": _NFS,  # fs/nfs/nfs4proc.c: the server has asked to try again later
    "nfs4_delay_interruptible": _NFS,
    "nfs_iocounter_wait": _NFS,  # fs/nfs/pagelist.c: for all that goes on on a file, before a lock is given back
    "request_wait_answer": _FUSE,  # fs/fuse/dev.c
    "fuse_get_req": _FUSE,  # fs/fuse/dev.c: the connection is not ready, or has too many requests
    "fuse_wait_on_page_writeback": _FUSE,  # fs/fuse/file.c
    "fuse_wait_on_folio_writeback": _FUSE,
}
"""Functions in which, and below which, the kernel waits for a server."""
_PAGE_LOCKS = frozenset(
    ("__folio_lock", "__folio_lock_killable", "folio_wait_bit_common", "__lock_page", "wait_on_page_bit_common")
)
"""Functions of mm/filemap.c that wait until a page is not locked; those with "page" before Linux 5.16."""
_FUSE_CALLS = frozenset(("fuse_open", "fuse_open_common", "fuse_finish_open", "fuse_setattr"))
"""Functions that take a file's pages away: fs/fuse/file.c and dir.c. Those stay locked that another thread has asked
the server for."""


def server_of(stack: Stack) -> int:
    """The number of the kind of server for which a stack waits; 0: for none that is known."""
    is_page = False
    for frame in reversed(stack):
        if frame.kind != "kernel":
            return 0
        if frame.name in _FUNCTIONS:
            return _FUNCTIONS[frame.name]
        if is_page and frame.name in _FUSE_CALLS:
            return _FUSE_FILE
        is_page = is_page or frame.name in _PAGE_LOCKS
    return 0
