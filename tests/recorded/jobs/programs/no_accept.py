"""A server that is too busy to accept connections."""

import socket
import sys
import time

server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=0)
print("ready", flush=True)
time.sleep(120)
