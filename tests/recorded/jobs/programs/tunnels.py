"""Threads that open and close tunnels: each device is made by an ioctl, under one lock of the kernel."""

import fcntl
import os
import struct
import threading

TUNSETIFF = 0x400454CA  # include/uapi/linux/if_tun.h
IFF_TUN_NO_PI = 0x1001


def open_tunnel() -> int:
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"job%d", IFF_TUN_NO_PI))
    return device


def connect_clients() -> None:
    while True:
        os.close(open_tunnel())


threads = [threading.Thread(target=connect_clients, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
threading.Timer(0.5, print, ("ready",), {"flush": True}).start()
for thread in threads:
    thread.join()
