"""Scheduler events of an imagined machine, and what each of its threads really did."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from stallscope.converters.model import Frame, Module, Stack, states
from stallscope.converters.model import scheduling as events
from stallscope.converters.model.scheduling import NEW, NO_STACK, OPEN, Scheduling

HOSTILE = "<b>\x1b[2J\u202e\udcff\n\\\"'; drop"
SLEEPING, WAITING, DEAD = 0x01, 0x02, 0x10


def stacks(count: int, seed: int = 1) -> list[Stack]:
    """User frames that lead into a system call that waits."""
    choice = random.Random(seed)
    libc, module = Module("/usr/lib/libc.so.6", "ab12", 1 << 21), Module("/opt/lib/libtrain.so", "cd34", 1 << 24)
    own = [Frame(f"train::step{i}(int)", "native", module, 4096 + 16 * i, f"step{i % 9}.cc", i) for i in range(200)]
    ways = [("ioctl", "__x64_sys_ioctl", "__mutex_lock"), ("read", "__x64_sys_read", "pipe_read")]
    found: list[Stack] = []
    for _ in range(count):
        call, system_call, wait = choice.choice(ways)
        kernel = [Frame(name, "kernel", None, 0xFFFF_FFFF_8100_0000 + len(name)) for name in (system_call, wait)]
        user = choice.choices(own, k=choice.randint(2, 16))
        found.append((*user, Frame(call, "native", libc, 64), *kernel, Frame("schedule", "kernel")))
    return found


@dataclass
class Machine:
    """Runs threads on cores, and writes down both the events and the truth."""

    seed: int = 1
    cores: int = 4
    threads: int = 12
    processes: int = 3
    now: int = 0
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
    truth: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    """States of each thread (row), and when each began; the row of the waker does not matter here."""

    def __post_init__(self) -> None:
        self.choice = random.Random(self.seed)
        self.stacks = stacks(50, self.seed)
        self.names: dict[str, int] = {}
        self.row: dict[int, int] = {}
        self.free = list(range(2_000, 1_000, -1))
        self.current = [0] * self.cores
        self.ready: list[int] = []
        self.blocked: dict[int, tuple[int, int, int]] = {}
        self.woken: dict[int, int] = {}
        self.since: dict[int, tuple[int, int, int]] = {}
        for i in range(self.threads):
            process = i % self.processes
            tid = self._thread(100 + i, 100 + process, 0, f"worker-{i}", f"python3 rank{process}")
            if i < self.cores:
                self.current[i] = tid
                self._is(tid, states.RUNNING)
            else:
                self.ready.append(tid)

    def _thread(self, tid: int, tgid: int, begin: int, name: str, process: str) -> int:
        indices = [self.names.setdefault(each, len(self.names)) for each in (name, process)]
        self.row[tid] = len(self.rows["threads"])
        self.rows["threads"].append((tid, tgid, begin, *indices))
        return tid

    def _is(self, tid: int, state: str) -> None:
        self.truth[self.row[tid]].append((state, self.now))

    def step(self) -> None:
        """Something happens on one core."""
        self.now += self.choice.randint(1, 20_000)
        cpu = self.choice.randrange(self.cores)
        what = self.choice.random()
        tid = self.current[cpu]
        if what < 0.35 and self.blocked:
            self._wake(cpu, self.choice.choice(list(self.blocked)[:8]))
        elif what < 0.36 and tid and self.free:
            self._create(cpu)
        elif what < 0.37 and tid and self.row[tid] >= self.threads:
            self._switch(cpu, DEAD)
        elif what < 0.5 and tid and self.ready:
            self._switch(cpu, states.PREEMPTED_BIT)
        elif tid:
            self._switch(cpu, self.choice.choice((SLEEPING, SLEEPING, WAITING)))
        elif self.ready:
            self._switch(cpu, 0)

    def _wake(self, cpu: int, tid: int) -> None:
        begin, state, stack = self.blocked.pop(tid)
        self.since[tid] = (begin, state, stack)
        self.woken[tid] = self.now
        self.ready.append(tid)
        self.rows["wakeups"].append((self.now, cpu, self.choice.randrange(self.cores), tid, self.current[cpu], 120, 0))
        self._is(tid, states.WOKEN)

    def _create(self, cpu: int) -> None:
        parent = self.current[cpu]
        _, tgid, _, _, process = self.rows["threads"][self.row[parent]]
        tid = self._thread(self.free.pop(), tgid, self.now, f"new-{self.now}", list(self.names)[process])
        self.rows["created"].append((self.now, cpu, tid, tgid, parent))
        self._is(tid, states.WOKEN)
        self.now += 500
        self.rows["wakeups"].append((self.now, cpu, cpu, tid, parent, 120, NEW))
        self.ready.append(tid)

    def _switch(self, cpu: int, state: int) -> None:
        tid = self.current[cpu]
        if state == DEAD:
            self.rows["exited"].append((self.now, cpu, tid, self.rows["threads"][self.row[tid]][1]))
            self.now += 700
        following = self.ready.pop(0) if self.ready else 0
        self.rows["switches"].append((self.now, cpu, state, tid, following, 120))
        if following:
            if following in self.since:
                begin, was, stack = self.since.pop(following)
                self.rows["blocked"].append((begin, self.woken.pop(following), self.now, following, stack, was))
            self._is(following, states.RUNNING)
        self.current[cpu] = following
        if not tid:
            return
        self._is(tid, states.BY_BITS[state])
        if state == states.PREEMPTED_BIT:
            self.ready.append(tid)
        elif state == DEAD:
            self.free.append(tid)  # the next thread gets it again
        else:
            stack = self.choice.randrange(len(self.stacks)) if self.choice.random() < 0.9 else NO_STACK
            self.blocked[tid] = (self.now, state, stack)

    def scheduling(self) -> Scheduling:
        """Events of the scheduler so far."""
        rows = dict(self.rows)
        rows["blocked"] = [
            *self.rows["blocked"],
            *((begin, self.woken[tid], OPEN, tid, stack, was) for tid, (begin, was, stack) in self.since.items()),
            *((begin, 0, OPEN, tid, stack, was) for tid, (begin, was, stack) in self.blocked.items()),
        ]
        kinds = {
            "switches": events.SWITCH,
            "wakeups": events.WAKE_UP,
            "created": events.CREATION,
            "exited": events.EXIT,
            "threads": events.THREAD,
            "blocked": events.BLOCKED,
        }
        arrays = {name: np.array(rows.get(name, []), dtype) for name, dtype in kinds.items()}
        made = Scheduling(self.now + 1_000, names=list(self.names), stacks=self.stacks, **arrays)
        return events.in_order(made)


def run(steps: int, **machine: Any) -> Machine:
    """A machine that has run for so many steps."""
    made = Machine(**machine)
    for _ in range(steps):
        made.step()
    return made


def rows(dtype: np.dtype[Any], **columns: Any) -> Any:
    """Rows of one kind; columns that are not named are 0. Calls have no stack then."""
    made = np.zeros(max(len(column) for column in columns.values()), dtype)
    if dtype == events.CALL:
        made["stack"] = NO_STACK
    for name, column in columns.items():
        made[name] = column
    return made
