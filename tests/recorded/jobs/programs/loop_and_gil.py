"""An event loop that answers each millisecond, beside a thread that computes in Python."""

import asyncio
import threading


def rebuild_index() -> None:
    index: dict[int, int] = {}
    while True:
        for number in range(100_000):
            index[number % 1000] = number * number


async def answer_requests() -> None:
    answered = 0
    while True:
        await asyncio.sleep(0.001)
        for number in range(2000):
            answered += number


threading.Thread(target=rebuild_index, daemon=True).start()
threading.Timer(0.5, print, ("ready",), {"flush": True}).start()
asyncio.run(answer_requests())
