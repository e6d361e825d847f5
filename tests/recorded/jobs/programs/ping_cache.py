"""Asks memcached for a key, ten times a second."""

import socket
import sys
import time

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
print("ready", flush=True)
while True:
    connection.sendall(b"get session\r\n")
    connection.recv(100)
    time.sleep(0.1)
