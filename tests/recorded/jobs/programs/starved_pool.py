"""A task of a pool waits for another task of the same pool, which has only one thread."""

import threading
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(1)


def render_chart() -> str:
    return "chart"


def render_page() -> str:
    return "page with " + pool.submit(render_chart).result()


threading.Timer(0.3, print, ("ready",), {"flush": True}).start()
print(pool.submit(render_page).result())
