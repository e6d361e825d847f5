"""Two threads move money between two accounts in opposite directions; each holds the lock that the other one needs."""

import threading
import time


class Account:
    def __init__(self) -> None:
        self.lock, self.balance = threading.Lock(), 1000


def transfer(source: Account, target: Account, amount: int) -> None:
    with source.lock:
        both.wait()
        with target.lock:
            source.balance -= amount
            target.balance += amount


def report_health() -> None:
    while True:
        time.sleep(0.01)


both = threading.Barrier(2)
east, west = Account(), Account()
for pair in ((east, west), (west, east)):
    threading.Thread(target=transfer, args=(*pair, 10), daemon=True).start()
time.sleep(0.3)
print("ready", flush=True)
report_health()
