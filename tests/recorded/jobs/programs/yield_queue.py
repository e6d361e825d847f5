"""A worker that gives up its core again and again while its queue is empty; now and then there is an item."""

import os
import threading
import time
from collections import deque

items: "deque[int]" = deque()


def next_item() -> int:
    while not items:
        os.sched_yield()
    return items.popleft()


def work() -> None:
    while True:
        next_item()


threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
while True:
    time.sleep(0.05)
    items.append(1)
