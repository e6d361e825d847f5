"""Debug files from debuginfod servers, through elfutils' own client: debuginfod_find_debuginfo(3).

The servers are those of $DEBUGINFOD_URLS, the cache is the client's. A failing server must not hold the user up: after
a server has been silent for a while no more requests are made, and Ctrl-C only ends the download. A trace that Ctrl-C
has ended waits for no silent server: its user waits for the outputs.

Until a server has answered, the client of elfutils 0.192 and newer makes no callback and cannot be stopped. Requests
are therefore made in a thread, and one that is given up is left to finish by itself; there is never more than one.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from ..base.interrupts import end_was_requested

_LIBRARY = "libdebuginfod.so.1"
_PATIENCE = 15.0
"""Seconds without a byte before giving up; overridden by $DEBUGINFOD_TIMEOUT."""
_AT_END = 1.5
"""Seconds after Ctrl-C in which `_PIECE` has to come, and then the next one."""
_PIECE = 64 << 10
"""Bytes of a download."""
_LOOK = 0.1
"""Interval in seconds at which a request's progress is checked."""
_MAX_FAILURES = 3
_IN_VAIN = 60.0
"""Total seconds that may be spent on requests without getting a file."""
_BUILD_ID_BYTES = range(8, 33)
"""XXH3 is the shortest in use, SHA-256 the longest. A shorter id could match someone else's file."""
_ONGOING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
"""debuginfod_progressfn_t: (client, bytes so far, total bytes or 0); a non-zero result ends the request."""


class Debuginfod:
    """One client. ``problem`` says why it makes no more requests; "" while it does."""

    def __init__(self, on_progress: Callable[[str], None] | None = None) -> None:
        """``on_progress`` gets a line of text now and then during a download."""
        self.problem = ""
        self._on_progress = on_progress
        self._failures = 0
        self._in_vain = 0.0
        self._client: int | None = None
        self._given_up = False
        self._moved_at = 0.0
        self._bytes = self._size = -1
        self._until, self._bytes_before = math.inf, 0
        """Time by which more has to come, after Ctrl-C, than these bytes and a `_PIECE`."""
        self._callback = _ONGOING(self._ongoing)
        try:
            self._library = _load()
        except (OSError, AttributeError) as error:
            self.problem = f"DEBUGINFOD_URLS is set, but there is no client: {error}; install {_LIBRARY}"
            return
        _keep_cache_our_own()
        self._client = self._library.debuginfod_begin()
        if not self._client:
            self.problem = "the client of debuginfod does not start"
            return
        self._library.debuginfod_set_progressfn(self._client, self._callback)

    @classmethod
    def from_environment(cls, on_progress: Callable[[str], None] | None = None) -> Debuginfod | None:
        """None unless $DEBUGINFOD_URLS names servers."""
        return cls(on_progress) if os.environ.get("DEBUGINFOD_URLS", "").strip() else None

    def find(self, build_id: str, name: str) -> int | None:
        """A descriptor (the caller's to close) of the debug file with this build-id; None when no server has it, or
        after a ``problem``. ``name`` is for display."""
        if self.problem or not _is_build_id(build_id) or self._is_late():
            return None
        began = time.monotonic()
        self._moved_at, self._bytes, self._bytes_before = began, -1, 0
        found = self._ask(bytes.fromhex(build_id), name)
        if found >= 0:
            self._failures = 0
            self._until = math.inf
            return found
        self._in_vain += time.monotonic() - began
        self._failures += found != -errno.ENOENT
        if not self.problem:
            if found == -errno.ETIME or self._failures >= _MAX_FAILURES:
                self.problem = f"debuginfod was asked no more: {os.strerror(-found)}"
            elif self._in_vain > _IN_VAIN:
                self.problem = "debuginfod was asked no more: too slow"
        return None

    def close(self) -> None:
        """Closes the client."""
        if self._client and not self._given_up:
            self._library.debuginfod_end(self._client)
            self._client = None
        self.problem = self.problem or "closed"

    def _ask(self, build_id: bytes, name: str) -> int:
        """A descriptor or a negative errno; -EINTR when the request was given up."""
        answer: queue.SimpleQueue[int] = queue.SimpleQueue()

        def ask() -> None:
            answer.put(self._library.debuginfod_find_debuginfo(self._client, build_id, len(build_id), None))

        try:
            threading.Thread(target=ask, name="debuginfod", daemon=True).start()
            while not self.problem:
                try:
                    return answer.get(timeout=_LOOK)
                except queue.Empty:
                    self._look(name)
        except KeyboardInterrupt:
            self.problem = "debuginfod was asked no more: interrupted"
        self._given_up = True
        return -errno.EINTR

    def _look(self, name: str) -> None:
        """Gives the request up when no data has arrived for a while; else reports its progress."""
        if self._is_late():
            return
        if time.monotonic() - self._moved_at > _patience():
            self.problem = "debuginfod was asked no more: nothing came from the server"
        elif self._on_progress:
            of = f" of {self._size >> 20}" if self._size > 0 else ""
            self._on_progress(f"debuginfod: {name}{f', {self._bytes >> 20}{of} MB' if self._bytes >= 0 else ''}")

    def _is_late(self) -> bool:
        """Whether the user, who has typed Ctrl-C, has waited for too little; that is then a problem."""
        if not end_was_requested():
            return False
        now = time.monotonic()
        if self._until == math.inf or self._bytes >= self._bytes_before + _PIECE:
            self._until, self._bytes_before = now + _AT_END, max(self._bytes, 0)
        elif now > self._until:
            self.problem = (
                f"debuginfod was asked no more: after Ctrl-C nothing came from the server for {_AT_END} s; a trace "
                "with -d waits longer"
            )
        return bool(self.problem)

    def _ongoing(self, _: int, done: int, whole: int) -> int:
        """Callback during a download, in older clients also before it; 1 ends the request."""
        if self.problem:
            return 1
        # Until a server has answered, older clients pass the number of their polls where the bytes come later.
        if self._library.debuginfod_get_url(self._client) and done != self._bytes:
            self._bytes, self._size, self._moved_at = done, whole, time.monotonic()
        return 0


def _patience() -> float:
    try:
        return float(os.environ.get("DEBUGINFOD_TIMEOUT", "")) or _PATIENCE
    except ValueError:
        return _PATIENCE


def _is_build_id(text: str) -> bool:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return False
    return len(raw) in _BUILD_ID_BYTES and any(raw)


def _keep_cache_our_own() -> None:
    """$HOME may still be that of the user who called sudo: root must not write to a folder where others make links."""
    import pwd

    if os.environ.get("DEBUGINFOD_CACHE_PATH"):
        return
    homes = filter(None, (os.environ.get("XDG_CACHE_HOME"), os.environ.get("HOME", "/nonexistent")))
    try:
        if all(os.stat(home).st_uid == os.geteuid() for home in homes):
            return
    except OSError:
        pass
    try:
        own = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return
    os.environ["DEBUGINFOD_CACHE_PATH"] = os.path.join(own, ".cache", "debuginfod_client")


def _load() -> Any:
    library = ctypes.CDLL(_LIBRARY)
    client = ctypes.c_void_p
    library.debuginfod_begin.restype = client
    library.debuginfod_begin.argtypes = []
    library.debuginfod_find_debuginfo.argtypes = [client, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    library.debuginfod_find_debuginfo.restype = ctypes.c_int
    library.debuginfod_set_progressfn.argtypes = [client, _ONGOING]
    library.debuginfod_set_progressfn.restype = None
    library.debuginfod_get_url.argtypes = [client]
    library.debuginfod_get_url.restype = ctypes.c_void_p
    library.debuginfod_end.argtypes = [client]
    library.debuginfod_end.restype = None
    return library
