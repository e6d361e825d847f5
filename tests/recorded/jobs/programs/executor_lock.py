"""Four workers of a pool need one lock, which each holds while it asks for a rate; the main thread waits for all."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

totals_lock = threading.Lock()
totals: dict[int, float] = {}


def ask_for_rate(order: int) -> float:
    time.sleep(0.01)
    return order / 7


def add_to_totals(order: int) -> None:
    with totals_lock:
        totals[order % 10] = totals.get(order % 10, 0) + ask_for_rate(order)


def settle_day() -> None:
    with ThreadPoolExecutor(4) as pool:
        wait([pool.submit(add_to_totals, order) for order in range(100_000)])


threading.Timer(0.5, print, ("ready",), {"flush": True}).start()
settle_day()
