"""Five threads share the one connection of a pool to PostgreSQL; each query is slow."""

import queue
import sys
import threading

import psycopg2

pool: "queue.Queue[psycopg2.extensions.connection]" = queue.Queue()
pool.put(psycopg2.connect(host=sys.argv[1], user="postgres", application_name="shop"))


def take_connection() -> "psycopg2.extensions.connection":
    return pool.get()


def run_query() -> None:
    connection = take_connection()
    with connection.cursor() as cursor:
        cursor.execute("select pg_sleep(0.02)")
    pool.put(connection)


def serve() -> None:
    while True:
        run_query()


threads = [threading.Thread(target=serve, daemon=True) for _ in range(5)]
for thread in threads:
    thread.start()
threading.Timer(0.3, print, ("ready",), {"flush": True}).start()
for thread in threads:
    thread.join()
