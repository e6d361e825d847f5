"""Connects to a server that accepts nobody: the queue of its connections is full."""

import socket
import sys


def connect_to_ledger() -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])))


queued = []
for _ in range(2):
    queued.append(socket.socket())
    queued[-1].setblocking(False)
    queued[-1].connect_ex(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
connect_to_ledger()
