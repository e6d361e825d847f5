"""Two network namespaces, joined by a link that is slow, or loses what it carries.

Each has a TUN device, and a process of ours carries packets from one to the other: each takes ``delay`` seconds, those
of more than ``rate`` bytes a second wait for the ones before, and each ``lose``-th packet with data is dropped.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import IO, Any

ENDS = ("10.112.0.1", "10.112.0.2")
"""Addresses of the two ends."""
DEVICE = "slow0"
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
"""include/uapi/linux/if_tun.h."""
_MTU = 1500
_WITH_DATA = 100
"""Bytes: a packet of TCP that is longer carries data."""
_CLONE_NEWNET = 0x40000000


class SlowLink:
    """Two namespaces and the link. A context manager."""

    def __init__(self, delay: float = 0.0, *, lose: int = 0, rate: float = 0.0, both: bool = True) -> None:
        """``lose``: 0 for no loss. ``both``: it also loses what the second end sends."""
        self._options = (delay, lose, rate, both)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> SlowLink:
        with contextlib.ExitStack() as stack:
            self._holders = [stack.enter_context(_holder()) for _ in ENDS]
            devices = [_tun(holder.pid) for holder in self._holders]
            for holder, address, other in zip(self._holders, ENDS, ENDS[::-1], strict=True):
                _inside(holder.pid, "ip", "link", "set", "lo", "up")
                _inside(holder.pid, "ip", "address", "add", address, "peer", other, "dev", DEVICE)
                _inside(holder.pid, "ip", "link", "set", DEVICE, "mtu", str(_MTU), "up")
            forwarder = os.fork()
            if not forwarder:
                _forward(devices, *self._options)
            stack.callback(_end, forwarder)
            for device in devices:
                os.close(device)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, end: int, command: Sequence[str], **more: Any) -> subprocess.Popen[str]:
        """Starts a program at an end, 0 or 1."""
        inside = ["nsenter", "-t", str(self._holders[end].pid), "-n", *command]
        return subprocess.Popen(inside, text=True, **more)


@contextlib.contextmanager
def _holder() -> Any:
    """A process that keeps a namespace of its own."""
    args = ["unshare", "--net", sys.executable, "-I", "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        out: IO[bytes] | None = process.stdout
        assert out
        out.readline()
        try:
            yield process
        finally:
            process.kill()


def _inside(pid: int, *command: str) -> None:
    subprocess.run(["nsenter", "-t", str(pid), "-n", *command], check=True, timeout=60)


def _tun(pid: int) -> int:
    """A TUN device in a process's namespace: a device is where the one who makes it is."""
    read, write = socket.socketpair()
    child = os.fork()
    if not child:
        with open(f"/proc/{pid}/ns/net", "rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
                os._exit(1)
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
        socket.send_fds(write, [b"x"], [device])
        os._exit(0)
    with read, write:
        os.waitpid(child, 0)
        read.settimeout(10)
        _, (device,), _, _ = socket.recv_fds(read, 1, 1)
    return device


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _forward(devices: Sequence[int], delay: float, lose: int, rate: float, both: bool) -> None:
    """Carries packets. Does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting: list[tuple[float, int, int, bytes]] = []
    seen, number, free = [0, 0], 0, [0.0, 0.0]
    while True:
        timeout = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
        ready, _, _ = select.select(devices, [], [], timeout)
        now = time.monotonic()
        for source in ready:
            way = devices.index(source)
            with contextlib.suppress(OSError):
                packet = os.read(source, 1 << 16)
                seen[way] += len(packet) > _WITH_DATA
                is_lost = lose and len(packet) > _WITH_DATA and seen[way] % lose == 0 and (both or way == 0)
                free[way] = max(free[way], now) + (len(packet) / rate if rate else 0)
                if not is_lost:
                    number += 1
                    heapq.heappush(waiting, (free[way] + delay, number, devices[1 - way], packet))
        while waiting and waiting[0][0] <= now:
            _, _, target, packet = heapq.heappop(waiting)
            with contextlib.suppress(OSError):
                os.write(target, packet)
