"""A server that accepts connections and says nothing."""

import socket
import sys

server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
accepted = []
while True:
    accepted.append(server.accept())
