"""The stories of a training node, each beside neighbours that are idle: the first sentence of a scan names the victim,
the place and the cause, and the next command leads on. Stand-ins take the place of the GPU's driver and libraries.

The scanned host are the story's processes and its neighbours, so that other work of the machine has no part in it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import run
from default_signals import in_child
from runner import FOLDER, HERE, SYSTEM_PYTHON, Workload

pytestmark = pytest.mark.usefixtures("live")

TRACE_SCAN = str(Path(sys.executable).with_name("trace-scan"))
FIRST_TO_RUN = ("chrt", "--rr", "1")
"""Command that keeps other work of the machine from the core of a story that runs on one: a nice value has no effect on
other sessions where the kernel groups tasks by session (CONFIG_SCHED_AUTOGROUP)."""
IDLE_SHELL = "sleep 100; true"
CRON = "while sleep 0.5; do :; done"
NEIGHBOURS = (*(3 * [IDLE_SHELL]), CRON)


@contextmanager
def neighbours() -> Iterator[list[int]]:
    """Shells that wait for a child, and one that starts a program now and then; their pids."""
    started = [
        subprocess.Popen(["timeout", "120", "bash", "-c", each], preexec_fn=in_child, start_new_session=True)  # noqa: PLW1509
        for each in NEIGHBOURS
    ]
    try:
        yield [each.pid for each in started]
    finally:
        for each in started:
            each.terminate()  # timeout ends its command, too
            each.wait()


class Story(NamedTuple):
    """A workload, and what has to be said of it."""

    processes: int
    command: tuple[object, ...]
    """Name of the workload, and its arguments."""
    first: tuple[str, ...]
    """Regular expressions, each of which has to match somewhere in the first sentence."""
    kind: str
    """Kind of the first row."""
    next: str
    """Regular expression for the whole next command."""
    in_python: bool = False


STORIES = {
    "ranks serialise in an ioctl of the driver": Story(
        8,
        ("demo", 60_000),
        ("worker threads? of demo", "topk → cudaGetDeviceProperties → ioctl"),
        "driver",
        r"trace-wakeup -n '\^demo\$' -d 5 --critical \d+",
    ),
    "the main thread waits for its worker": Story(
        1,
        ("python_worker.py", 1_000_000),
        ("the main thread of .*python_worker", "await_result", "meanwhile the .* thread .* on a core"),
        "thread",
        r"trace-wakeup -p \d+ -d 5 --critical \d+",
        in_python=True,
    ),
    "a loader made anew starves the main thread": Story(
        1,
        ("data_loader", 1000, 5, 300),
        (
            "the main thread of data_loader",
            "next_epoch → futex",
            r"meanwhile (\d+ of )?the \d+ loader threads sleep for .* read_data",
        ),
        "thread",
        r"trace-wakeup -p \d+ -d 5 --critical \d+",
    ),
    "a pool of threads for each call": Story(
        1,
        ("pool_per_call", 100_000, 4),
        ("pool_per_call makes its threads anew", "named pool-"),
        "pool-anew",
        r"trace-oncpu -p \d+ -d 5 -o cpu.html",
    ),
    "pieces cross the boundary from Python to C": Story(
        1,
        ("implementations.py", "boundary", 1_000_000),
        ("the main thread of .*implementations", "on a core", "boundary_step"),
        "cpu",
        r"trace-oncpu -p \d+ -d 5 -o cpu.html",
        in_python=True,
    ),
    "the caller stands still while memory is copied": Story(
        1,
        ("cuda_calls", "plain", 1, 1_000_000, 5000),
        ("the main thread of cuda_calls", "ioctl", "cuMemcpyHtoD|cudaMemcpy|cudaGetDeviceProperties|more names"),
        "driver",
        r"trace-(wakeup|oncpu) -p \d+ .*",
    ),
}


@contextmanager
def told(story: Story) -> Iterator[list[int]]:
    """The processes of a story; their pids."""
    name, *arguments = map(str, story.command)
    with ExitStack() as stack:
        if story.in_python:
            code = [*FIRST_TO_RUN, SYSTEM_PYTHON, str(HERE / name), *arguments]
            process = subprocess.Popen(code, stdout=subprocess.PIPE, preexec_fn=in_child)  # noqa: PLW1509
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stdout
            process.stdout.readline()
            yield [process.pid]
            return
        started = [stack.enter_context(Workload(name, *arguments)) for _ in range(story.processes)]
        for each in started:
            each.release()
        yield [pid for each in started for pid in each.pids]


def scan(pids: Sequence[int]) -> dict[str, Any]:
    ended = run("-p", ",".join(map(str, pids)), "--children", "-d", "2", "--json", command=TRACE_SCAN).check_succeeded()
    made: dict[str, Any] = json.loads(ended.out)
    return made


@pytest.mark.parametrize("name", STORIES)
def test_the_first_sentence_tells_the_story(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(FOLDER))
    story = STORIES[name]
    with told(story) as pids, neighbours() as beside:
        made = scan([*pids, *beside])
    answer, step = made["summary"]["answer"], made["summary"]["next"]
    for wanted in story.first:
        assert re.search(wanted, answer[0]), answer
    rows = [row for row in made["processes"] if not set(pids).isdisjoint(row["pids"])]
    assert rows[0]["kind"] == story.kind, (rows, answer)
    assert rows[0] == made["processes"][0], made["processes"]
    assert re.fullmatch(story.next, step["command"]), step


def test_the_ranks_of_the_serialised_job_are_one_row() -> None:
    with told(STORIES["ranks serialise in an ioctl of the driver"]) as pids, neighbours() as beside:
        made = scan([*pids, *beside])
    assert made["concerned"] == len(pids)
    assert sorted(made["processes"][0]["pids"]) == sorted(pids)
    assert made["processes"][0]["share"] > 0.5
