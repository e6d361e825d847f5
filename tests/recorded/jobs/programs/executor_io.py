"""An event loop that hands orders to a thread, which commits each of them to an SQLite database."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor


def open_database() -> sqlite3.Connection:
    database = sqlite3.connect("orders.db", isolation_level=None)
    database.execute("create table if not exists orders (id integer primary key, text)")
    return database


def save_order(text: str) -> None:
    connections[0].execute("insert into orders (text) values (?)", (text,))


async def take_orders(pool: ThreadPoolExecutor) -> None:
    loop = asyncio.get_running_loop()
    number = 0
    while True:
        await loop.run_in_executor(pool, save_order, f"order {number}")
        number += 1
        if number == 20:
            print("ready", flush=True)


with ThreadPoolExecutor(1) as only:
    connections = [only.submit(open_database).result()]
    asyncio.run(take_orders(only))
