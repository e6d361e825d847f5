"""Words for ranks that stand in a collective operation."""

from __future__ import annotations

from stallscope.converters.facts.jobs import Rank
from stallscope.converters.facts.who_can_end import NO_PYTHON
from stallscope.converters.phrases.stuck_ranks import stuck_ranks
from stallscope.converters.rules.chain_ends import OTHER_END, Chain, Link
from stallscope.converters.rules.stuck_ranks import Inside, Outside, StuckRanks
from summary_profiles import SECOND

ALL_REDUCE = ("train", "ncclAllReduce")


def inside(*numbers: int, frames: tuple[str, ...] = ALL_REDUCE) -> tuple[Inside, ...]:
    return tuple(Inside(Rank(10 + number, number, "environment"), frames) for number in numbers)


def outside(
    *numbers: int, kind: str = "sleep", frames: tuple[str, ...] = ("forgets", "nanosleep")
) -> tuple[Outside, ...]:
    return tuple(Outside(Rank(10 + number, number, "environment"), kind, 0.998, frames) for number in numbers)


def told(
    stand: tuple[Inside, ...],
    others: tuple[Inside, ...] = (),
    out: tuple[Outside, ...] = (),
    missing: tuple[int, ...] = (),
    *,
    maybe: tuple[Inside, ...] = (),
    for_gpu: bool = False,
    polls: bool = False,
    size: int = 0,
) -> str:
    return stuck_ranks(StuckRanks("train", stand, others, out, maybe, missing, for_gpu, polls, size), 10 * SECOND)


def test_one_has_not_come() -> None:
    assert told(inside(0, 2, 3), out=outside(1)) == (
        "3 of 4 ranks of train have been in train → ncclAllReduce since before the trace began, for 10.0 s; rank 1 "
        "(pid 11) is not in it: 99.8 % of its time, it is asleep in forgets → nanosleep."
    )
    assert told(inside(0), out=outside(1, kind="running", frames=())) == (
        "1 of 2 ranks of train has been in train → ncclAllReduce since before the trace began, for 10.0 s; rank 1 "
        "(pid 11) is not in it: 99.8 % of its time, it is on a core."
    )
    assert told(inside(0), out=outside(1, kind="")).endswith("is not in it: nothing is known of it.")
    assert "10.0 s, waiting for the GPU; rank 1" in told(inside(0, 2), out=outside(1), for_gpu=True)
    assert "10.0 s, polling on a core; rank 1" in told(inside(0, 2), out=outside(1), polls=True)
    both = told(inside(0, 2), out=outside(1), for_gpu=True, polls=True)
    assert "10.0 s, polling on a core, waiting for the GPU; rank 1" in both


def test_several_have_not() -> None:
    text = told(inside(0), out=outside(1, 2, 3, 4, 5))
    assert "rank 3 (pid 13) is not in it" in text and "rank 4" not in text
    assert text.endswith("; nor are 2 others.")
    assert told(inside(0), out=outside(1, 2, 3, 4)).endswith("; nor is 1 other.")


def test_one_is_elsewhere() -> None:
    text = told(inside(0, 2, 3), inside(1, frames=("train", "ncclBroadcast")))
    assert text.endswith("for 10.0 s; rank 1 (pid 11) stands in train → ncclBroadcast instead.")


def test_some_wait_for_their_gpus() -> None:
    wait = ("train", "cudaStreamSynchronize")
    assert told(inside(0), out=outside(1, kind=""), maybe=inside(2, frames=wait)) == (
        "1 of 3 ranks of train has been in train → ncclAllReduce since before the trace began, for 10.0 s; rank 1 "
        "(pid 11) is not in it: nothing is known of it; rank 2 (pid 12) waits for the GPU all the time, and may be in "
        "it, too."
    )
    assert told(inside(0), maybe=inside(1, 2, 3, 4, frames=wait)).endswith(
        "; rank 1 (pid 11), rank 2 (pid 12), rank 3 (pid 13) and 1 other wait for the GPU all the time, and may be in "
        "it, too."
    )


def test_some_were_not_traced() -> None:
    assert told(inside(0, 2, 3), missing=(1,)).endswith("; rank 1 was not traced, or has ended.")
    assert told(inside(0), missing=(1, 2)).endswith("; ranks 1, 2 were not traced, or have ended.")
    assert told(inside(0), missing=tuple(range(1, 8))).endswith(
        "; ranks 1, 2, 3 and 4 more were not traced, or have ended."
    )


def test_all_have_come() -> None:
    assert told(inside(0, 1, frames=()), size=2) == (
        "All 2 ranks of train have been in a collective operation since before the trace began, for 10.0 s; no rank is "
        "missing: each has come, and none goes on."
    )
    assert told(inside(0, 1)).endswith("; no other rank is known: each has come, and none goes on.")
    assert told(inside(0, 1), for_gpu=True).endswith(
        "waiting for the GPU; each of them waits: for much work, or for an operation in which they differ."
    )


def test_the_end_of_the_chain_comes_right_after() -> None:
    link = Link(OTHER_END, "python loader.py", 77, kind="sleep", share=1.0, frames=("produce", "read"))
    out = tuple(each._replace(chain=Chain((link,))) for each in outside(1, 2, kind="peer"))
    assert told(inside(0, 3), out=out).endswith(
        "; rank 2 (pid 12) is not in it: 99.8 % of its time, it is waiting for another process in forgets → nanosleep. "
        "Rank 1 waits for python loader.py (pid 77), which is asleep in produce → read for 100.0 % of its time."
    )


def test_nobody_can_end_its_wait() -> None:
    (out,) = outside(1, kind="thread", frames=("next_batch", "Queue.get"))
    assert told(inside(0), out=(out._replace(chain=Chain(nobody=NO_PYTHON)),)).endswith(
        "it is waiting in next_batch → Queue.get, and no other traced thread of it runs Python."
    )
    assert told(inside(0), out=(out,)).endswith("it is waiting for another thread in next_batch → Queue.get.")


def test_it_is_in_the_handler_of_a_signal() -> None:
    (out,) = outside(1, frames=("on_signal", "nanosleep"))
    assert told(inside(0), out=(out._replace(interrupted=("train", "evaluate")),)).endswith(
        "it is asleep in on_signal → nanosleep, in the handler of a signal that interrupted train → evaluate."
    )
