"""The command that shows more of a job that stands still: of the rank that is missing, and not of one that waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..facts.facts import Facts
from ..facts.identity import kernel_id
from ..facts.wait_kinds import CHILD, PEER, THREAD
from ..facts.wait_sums import Thread
from ..model.collectives import Collectives, Standing
from ..model.next_step import MISSING_RANK, MISSING_WAITS_FOR, RANKS_STAND, NextStep, Whom
from ..rules.chain_ends import chain_of, doing
from ..rules.rank_states import standing_for
from ..rules.ranking import Judgement
from ..rules.stuck_ranks import StuckRanks

_A_WHILE = ("-d", "5")
_STACKS = ("-d", "1", "--per-thread", "-o", "stacks.html")


def after_hang(step: NextStep | None, facts: Facts, judgement: Judgement) -> NextStep | None:
    """Recommends another step than ``step`` if ranks stand still, and one of those that are not with the others is
    traced."""
    missing, others = _of_calls(facts.collectives)
    if not missing and not others and judgement.first and isinstance(judgement.first.detail, StuckRanks):
        detail = judgement.first.detail
        missing = [each.rank.pid for each in detail.outside]
        others = [each.rank.pid for each in detail.others]
    threads = [thread for pid in missing for thread in standing_for(facts, pid)]
    if threads:
        return _of_missing(facts, threads[0])
    return NextStep("trace-offcpu", _pids(others[:1]), _STACKS, RANKS_STAND) if others else step


def _of_calls(found: Sequence[Collectives]) -> tuple[list[int], list[int]]:
    """Ranks that live and are in no operation, and those in another one than most, of the first communicator that
    stands still and lacks any."""
    for of in found:
        missing = [each.pid for each in of.standing if not each.what and not each.has_ended]
        inside = Counter(_key(each) for each in of.standing if each.what)
        most = max(inside, key=lambda key: inside[key], default=None)
        others = [each.pid for each in of.standing if each.what and _key(each) != most]
        if missing or others:
            return missing, others
    return [], []


def _key(each: Standing) -> tuple[str, int, int]:
    return each.what, each.bytes, each.number


def _of_missing(facts: Facts, thread: Thread) -> NextStep:
    pid, chain, place = thread[0], chain_of(facts, thread), doing(facts, thread).place
    traced = {kernel_id(each) for each, _ in facts.threads}
    ends = list(dict.fromkeys(link.pid for link in chain.links if link.pid not in traced))
    if ends:
        return NextStep("trace-wall", _pids([pid], ends), _A_WHILE, MISSING_WAITS_FOR)
    if not chain.links and not chain.nobody and place and place.kind in (CHILD, PEER, THREAD):
        whom = Whom((*_pids([pid]).options, "--children"))
        return NextStep("trace-wall", whom, _A_WHILE, MISSING_WAITS_FOR)
    others = list(dict.fromkeys(link.pid for link in chain.links if link.pid != kernel_id(pid)))
    return NextStep("trace-offcpu", _pids([pid], others), _STACKS, MISSING_RANK)


def _pids(own: Sequence[int], others: Sequence[int] = ()) -> Whom:
    """``own``: ids of the profile; ``others``: the kernel's."""
    return Whom(("-p", ",".join(map(str, (*map(kernel_id, own), *others)))))
