"""A shop, as a WSGI application: what it does is in its path."""

import hashlib
import http.client
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

cache_lock = threading.Lock()


def fetch_price() -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["PRICES"]))
    connection.request("GET", "/price")
    return connection.getresponse().read()


def refresh_cache() -> bytes:
    with cache_lock:
        time.sleep(0.02)
    return b"fresh"


def sign_order() -> bytes:
    return hashlib.pbkdf2_hmac("sha256", b"order", b"salt", 60_000)


PAGES = {"/price": fetch_price, "/cache": refresh_cache, "/sign": sign_order}


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    answer = PAGES[environ["PATH_INFO"]]()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
