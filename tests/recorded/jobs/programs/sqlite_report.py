"""Holds the write lock of an SQLite database while it makes a report."""

import sqlite3
import time


def make_report() -> None:
    time.sleep(0.25)


database = sqlite3.connect("shop.db", isolation_level=None)
database.execute("create table if not exists stock (id integer primary key, n integer)")
database.execute("insert or replace into stock values (1, 0)")
print("ready", flush=True)
while True:
    database.execute("begin immediate")
    database.execute("update stock set n = n + 1 where id = 1")
    make_report()
    database.execute("commit")
    time.sleep(0.01)
