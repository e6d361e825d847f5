"""A service that looks up prices, slowly: it listens on the port of its argument."""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def look_up_price() -> bytes:
    time.sleep(0.06)
    return b"42"


class Prices(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        answer = look_up_price()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: object) -> None:
        """Nothing is logged."""


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Prices)
server.daemon_threads = True
print("ready", flush=True)
server.serve_forever()
