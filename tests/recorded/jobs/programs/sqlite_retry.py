"""Sells from the stock, and tries again itself, after a sleep, when another one has the database."""

import sqlite3
import time

database = sqlite3.connect("shop.db", timeout=0, isolation_level=None)


def sell_item() -> None:
    while True:
        try:
            database.execute("update stock set n = n - 1 where id = 1")
            return
        except sqlite3.OperationalError:
            time.sleep(0.005)


print("ready", flush=True)
while True:
    sell_item()
