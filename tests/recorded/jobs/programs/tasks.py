"""Tasks of celery: each charges a card at a slow service."""

import http.client
import os

from celery import Celery

app = Celery("tasks", broker="redis+socket://" + os.environ["BROKER"])


@app.task
def charge_card(number: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["PRICES"]))
    connection.request("GET", "/price")
    return int(connection.getresponse().read())
