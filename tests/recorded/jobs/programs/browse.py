"""Clients, each a thread, that ask a server for one page after the other: port, number, path, cookie."""

import http.client
import sys
import threading
from itertools import count

port, clients, path, *cookie = sys.argv[1:]
headers = {"Cookie": cookie[0]} if cookie else {}


def fetch_pages() -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(port))
    for page in count():
        connection.request("GET", path, headers=headers)
        connection.getresponse().read()
        if page == 2:
            print("ready", flush=True)


threads = [threading.Thread(target=fetch_pages, daemon=True) for _ in range(int(clients) - 1)]
for thread in threads:
    thread.start()
fetch_pages()
