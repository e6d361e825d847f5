#!/usr/bin/python3
"""Functions that are called in many ways, each call timed. For any CPython from 3.8 on.

    python3 python_steps.py [--wait] [--linger] [ROUNDS=20]

Truth: `waits` has one record per function, called by its name: how often it was called and returned, and how long that
took in all, by a clock around each call. Each round calls every function at least once; a call sleeps for 1 ms. Between
the calls, the functions are looked at in ways that take references to them. `shared` is called in three threads, and
`left` and `right` in one each. A call inside another one of the same function is a part of that one.
`left` is how often `raises` was left by an exception, `traps` how often the kernel sent SIGTRAP, since the hypervisor
had lost the cause of a breakpoint's trap (docs/steps.md).
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
import time
import traceback

LIMIT_SECONDS = 120
PAUSE = 0.001
DEPTH = 3

calls = {}
lock = threading.Lock()


def timed(name, function, *arguments, **keywords):
    """Calls it; an exception goes through, and is not counted."""
    begin = time.monotonic_ns()
    result = function(*arguments, **keywords)
    took = time.monotonic_ns() - begin
    with lock:
        wait = calls.setdefault(name, {"function": name, "calls": 0, "ns": 0})
        wait["calls"] += 1
        wait["ns"] += took
    return result


def plain(number):
    time.sleep(PAUSE)
    return number


def recursive(depth):
    if depth:
        return recursive(depth - 1)
    return time.sleep(PAUSE)


def raises(fails):
    time.sleep(PAUSE)
    if fails:
        raise ValueError("left")


def looks():
    code = sys._getframe().f_code
    kept.append(code)
    time.sleep(PAUSE)
    del code
    traceback.extract_stack()
    kept.pop()


def shared():
    time.sleep(PAUSE)


def mapped(number):
    time.sleep(PAUSE)
    return number


def suspended():
    time.sleep(PAUSE)
    yield 1


class Model:
    def step(self, number, *more, often=1, **options):
        time.sleep(PAUSE * often)

    def __getitem__(self, number):
        time.sleep(PAUSE)
        return number

    @property
    def loss(self):
        time.sleep(PAUSE)
        return 1.0

    def __call__(self):
        time.sleep(PAUSE)


def note(name, begin):
    """A call that began then has returned."""
    took = time.monotonic_ns() - begin
    with lock:
        wait = calls.setdefault(name, {"function": name, "calls": 0, "ns": 0})
        wait["calls"] += 1
        wait["ns"] += took


def outer(number):
    """Every third call has another one inside, with a third one inside that."""
    time.sleep(PAUSE)
    if number % 3 == 0:
        begin = time.monotonic_ns()
        inner()
        note("inner", begin)
        time.sleep(PAUSE)


def inner():
    time.sleep(4 * PAUSE)
    begin = time.monotonic_ns()
    deepest()
    note("deepest", begin)


def deepest():
    time.sleep(PAUSE)


def even(depth):
    """Calls `odd`, which calls it again."""
    time.sleep(PAUSE)
    if depth == DEPTH + 1:
        begin = time.monotonic_ns()
        odd(depth - 1)
        note("odd", begin)
    elif depth:
        odd(depth - 1)


def odd(depth):
    time.sleep(PAUSE)
    even(depth - 1)


def left():
    time.sleep(PAUSE)


def right():
    time.sleep(PAUSE)


kept = []
model = Model()


def by_subscript():
    return model[1]


def by_property():
    return model.loss


def by_map():
    return list(map(mapped, [1]))


def in_place():
    """Calls in a loop: specialised instructions call it."""
    for number in range(3):
        begin = time.monotonic_ns()
        plain(number)
        took = time.monotonic_ns() - begin
        calls["plain"]["calls"] += 1
        calls["plain"]["ns"] += took


def made_again():
    for _ in range(2):

        def closure():
            time.sleep(PAUSE)

        timed("closure", closure)


def look():
    """Takes references and gives them back."""
    for function in (plain, recursive, shared, Model.step, Model.__getitem__):
        code = function.__code__
        kept.append(code)
        assert function.__code__.co_name
        assert getattr(function, *["__code__"]) is code
        kept.pop()


def round_(number):
    timed("plain", plain, number)
    in_place()
    timed("recursive", recursive, DEPTH)
    look()
    timed("looks", looks)
    timed("step", functools.partial(model.step, number), often=1)
    options = {"often": 1, "other": 2}
    timed("step", model.step, *(number, 2), **options)
    timed("__getitem__", by_subscript)
    timed("loss", by_property)
    timed("__call__", model)
    timed("mapped", by_map)
    list(suspended())
    made_again()
    timed("outer", outer, number)
    timed("even", even, DEPTH + 1)
    timed("raises", raises, False)
    try:
        raises(True)
    except ValueError:
        truth["left"] += 1


def share(rounds):
    for _ in range(rounds):
        timed("shared", shared)


def repeat(name, function, rounds):
    for _ in range(rounds):
        begin = time.monotonic_ns()
        function()
        note(name, begin)


truth = {"left": 0, "traps": 0}


def trapped(_number, _frame):
    truth["traps"] += 1


def main():
    signal.alarm(LIMIT_SECONDS)
    signal.signal(signal.SIGTRAP, trapped)
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    rounds = int(numbers[0]) if numbers else 20
    pid = os.getpid()
    print(json.dumps({"ready": True, "pid": pid, "pids": [pid], "tids": [pid]}), flush=True)
    if "--wait" in sys.argv and not os.read(0, 1):
        sys.exit(1)
    truth.update({"workload": "python_steps", "pid": pid, "begin_ns": time.monotonic_ns()})
    threads = [threading.Thread(target=share, args=(rounds,)) for _ in range(3)]
    threads += [threading.Thread(target=repeat, args=("left", left, rounds))]
    threads += [threading.Thread(target=repeat, args=("right", right, rounds))]
    for thread in threads:
        thread.start()
    for number in range(rounds):
        round_(number)
    for thread in threads:
        thread.join()
    truth.update(end_ns=time.monotonic_ns(), threads=[], version=list(sys.version_info[:3]))
    truth["waits"] = [dict(wait, pid=pid, tid=pid, blocks=wait["calls"]) for wait in calls.values()]
    print(json.dumps(truth), flush=True)
    while "--linger" in sys.argv and os.read(0, 1):
        pass


if __name__ == "__main__":
    main()
