"""A shop, as an ASGI application, which asks the service of prices without await: its event loop waits, too."""

import http.client
import os
from typing import Any


def fetch_price() -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["PRICES"]))
    connection.request("GET", "/price")
    return connection.getresponse().read()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    answer = fetch_price()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]})
    await send({"type": "http.response.body", "body": answer})
