"""Words for the end of a chain of waits."""

from __future__ import annotations

from stallscope.converters.facts.who_can_end import ALONE, NO_PYTHON
from stallscope.converters.phrases.chain_ends import chain, without_others
from stallscope.converters.rules.chain_ends import ENDS, HAS_LOCK, ONLY, OTHER_END, Chain, Link

LOADER = Link(OTHER_END, "python loader.py", 12, kind="sleep", share=0.999, frames=("produce", "read"))
READER = Link(ONLY, "train", 11, "reader", 14, "peer", 1.0, ("recv",))


def told(*links: Link, nobody: str = "", is_circle: bool = False) -> str:
    return chain(Chain(links, nobody, is_circle), "rank 1")


def test_one_link() -> None:
    assert told(LOADER) == (
        "Rank 1 waits for python loader.py (pid 12), which is asleep in produce → read for 99.9 % of its time."
    )
    assert told(LOADER._replace(why=HAS_LOCK)).startswith("Rank 1 waits for what python loader.py (pid 12) has locked,")
    assert told(LOADER._replace(why=ENDS)).startswith("Rank 1 waits for the end of python loader.py (pid 12), which")
    assert told(READER).startswith("Rank 1 waits for its thread reader (tid 14), the only other one that may end this,")
    assert told() == ""


def test_what_was_not_traced() -> None:
    one = Link(OTHER_END, "server", 9)
    assert told(one) == "Rank 1 waits for server (pid 9), which was not traced."
    assert told(one._replace(cores=0.9)).endswith(", which was not traced and uses 0.9 cores.")
    assert told(one._replace(cores=0.001)).endswith(", which was not traced and hardly runs.")
    assert told(one._replace(cores=0.1)).endswith(", which was not traced."), "neither tells anything"


def test_several_links() -> None:
    assert told(READER._replace(why=OTHER_END), LOADER) == (
        "Rank 1 waits for its thread reader (tid 14), which waits for python loader.py (pid 12), which is asleep in "
        "produce → read for 99.9 % of its time."
    )
    assert told(LOADER, Link(OTHER_END, "train", 11), is_circle=True).endswith(
        ", which waits for train (pid 11), one of these."
    )


def test_nobody_can_end_it() -> None:
    waits = LOADER._replace(kind="thread", frames=("Queue.get",))
    assert told(waits, nobody=NO_PYTHON).endswith(
        "which is waiting in Queue.get for 99.9 % of its time; no other traced thread of it runs Python."
    )
    assert told(waits).endswith("which is waiting for another thread in Queue.get for 99.9 % of its time.")
    assert without_others(ALONE) == "no other thread of it was traced"
