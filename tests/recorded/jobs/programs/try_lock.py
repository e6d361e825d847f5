"""Tries to take an advisory lock of PostgreSQL, and sleeps when another session has it: the job of its argument."""

import sys
import time

import psycopg2

host, role = sys.argv[1:]
connection = psycopg2.connect(host=host, user="postgres", application_name=role)
connection.autocommit = True
cursor = connection.cursor()


def take_turn() -> None:
    while True:
        cursor.execute("select pg_try_advisory_lock(7)")
        if cursor.fetchone()[0]:
            return
        time.sleep(0.01)


def rebuild_prices() -> None:
    time.sleep(100)


if role == "holder":
    take_turn()
print("ready", flush=True)
if role == "holder":
    rebuild_prices()
take_turn()
