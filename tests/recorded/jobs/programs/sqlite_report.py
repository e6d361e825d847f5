"""Keeps the write lock of an SQLite database while it makes a long report."""

import sqlite3
import time


def make_report() -> None:
    for part in range(2000):
        sum(number * number for number in range(part, part + 30_000))
        time.sleep(0.03)


database = sqlite3.connect("shop.db", isolation_level=None)
database.execute("create table stock (id integer primary key, n integer)")
database.execute("insert into stock values (1, 0)")
database.execute("begin immediate")
database.execute("update stock set n = n + 1 where id = 1")
print("ready", flush=True)
make_report()
database.execute("commit")
