"""Changes a row of PostgreSQL, and then makes an invoice before it commits: the session is idle in a transaction."""

import sys
import time

import psycopg2


def make_invoice() -> None:
    time.sleep(100)


connection = psycopg2.connect(host=sys.argv[1], user="postgres", application_name="billing")
with connection.cursor() as cursor:
    cursor.execute("update hot set n = n + 1 where id = 1")
print("ready", flush=True)
make_invoice()
connection.commit()
