"""Sells from the stock; SQLite tries again for a while when another one has the database."""

import sqlite3

database = sqlite3.connect("shop.db", timeout=60, isolation_level=None)


def sell_item() -> None:
    database.execute("update stock set n = n - 1 where id = 1")


print("ready", flush=True)
while True:
    sell_item()
