"""A client of redis: ``get`` asks for one key after the other, ``report`` runs a long script, ``lock`` waits for a lock
that another client keeps."""

import socket
import sys
import time

SCRIPT = "local n = 0 for i = 1, 8000000 do n = n + i % 7 end return n"
path, role = sys.argv[1:]
connection = socket.socket(socket.AF_UNIX)
connection.connect(path)


def ask(*words: str) -> bytes:
    request = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    connection.sendall(request.encode())
    return connection.recv(4096)


def acquire_lock() -> None:
    while not ask("SET", "lock:stock", "1", "NX").startswith(b"+OK"):
        time.sleep(0.005)


def load_session() -> None:
    ask("GET", "session:1")


def count_all() -> None:
    ask("EVAL", SCRIPT, "0")


if role == "hold":
    acquire_lock()
print("ready", flush=True)
while True:
    if role == "report":
        count_all()
        time.sleep(0.005)
    elif role == "get":
        load_session()
    elif role == "lock":
        acquire_lock()
    else:
        time.sleep(1)
