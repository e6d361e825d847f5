"""Words for ranks that stand in a collective operation. Names are unescaped (hostile)."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.units import count, duration, plural
from ..facts import thresholds
from ..facts.jobs import Rank
from ..facts.wait_kinds import THREAD
from ..rules.stuck_ranks import Inside, Outside, StuckRanks
from .chain_ends import chain, without_others
from .jobs import DOES, percent, rank_name


def stuck_ranks(found: StuckRanks, length: int) -> str:
    """``3 of 4 ranks of train have been in train → ncclAllReduce since before the trace began, for 10.0 s, waiting for
    other ranks; rank 1 (pid 12) is not in it: it is 100.0 % of its time asleep in forgets → nanosleep.`` ``length``: of
    the trace, in ns."""
    traced = len(found.inside) + len(found.others) + len(found.maybe) + len(found.outside)
    whole = "all" if len(found.inside) == traced else f"{count(len(found.inside))} of"
    be = "has" if len(found.inside) == 1 else "have"
    where = " → ".join(found.inside[0].frames) or "a collective operation"
    text = (
        f"{whole[:1].upper()}{whole[1:]} {plural(traced, 'rank')} of {found.process} {be} been in {where} since before"
    )
    text += f" the trace began, for {duration(length)}"
    text += ", polling on a core" if found.polls else ""
    text += ", waiting for the GPU" if found.for_gpu else ""
    rest = [*_others(found.others), *_outside(found.outside), *_maybe(found.maybe), *_missing(found.missing)]
    if not rest:
        missing = "no rank is missing" if found.size else "no other rank is known"
        rest = [f"{missing}: each has come, and none goes on"]
        if found.for_gpu:
            rest = ["each of them waits: for much work, or for an operation in which they differ"]
    chains = [chain(each.chain, _called(each.rank)) for each in found.outside[: thresholds.CHAINS_TOLD]]
    return " ".join([f"{text}; {'; '.join(rest)}.", *filter(None, chains)])


def _called(rank: Rank) -> str:
    """``rank 1``: the sentence before has told its process."""
    return f"rank {rank.number}"


def _others(found: Sequence[Inside]) -> list[str]:
    told = [
        f"{rank_name(each.rank)} stands in {' → '.join(each.frames)} instead"
        for each in found[: thresholds.RANKS_OUTSIDE]
    ]
    more = len(found) - thresholds.RANKS_OUTSIDE
    return [*told, f"so do{'es' if more == 1 else ''} {plural(more, 'other')}"] if more > 0 else told


def _outside(found: Sequence[Outside]) -> list[str]:
    told = [f"{rank_name(each.rank)} is not in it: {_does(each)}" for each in found[: thresholds.RANKS_OUTSIDE]]
    more = len(found) - thresholds.RANKS_OUTSIDE
    return [*told, f"nor {'is' if more == 1 else 'are'} {plural(more, 'other')}"] if more > 0 else told


def _maybe(found: Sequence[Inside]) -> list[str]:
    if not found:
        return []
    most = thresholds.RANKS_OUTSIDE
    told = ", ".join(rank_name(each.rank) for each in found[:most])
    told += f" and {plural(len(found) - most, 'other')}" if len(found) > most else ""
    one = len(found) == 1
    return [f"{told} wait{'s' if one else ''} for the GPU all the time, and may be in it, too"]


def _does(each: Outside) -> str:
    if not each.kind:
        return "nothing is known of it"
    alone = each.chain.nobody if not each.chain.links else ""
    what = "waiting" if alone and each.kind == THREAD else DOES.get(each.kind, each.kind)
    where = f" in {' → '.join(each.frames)}" if each.frames else ""
    text = f"{percent(each.share)} of its time, it is {what}{where}"
    if each.interrupted:
        text += f", in the handler of a signal that interrupted {' → '.join(each.interrupted)}"
    return f"{text}, and {without_others(alone)}" if alone else text


def _missing(numbers: Sequence[int]) -> list[str]:
    if not numbers:
        return []
    most = thresholds.RANKS_OUTSIDE
    told = ", ".join(map(str, numbers[:most]))
    told += f" and {count(len(numbers) - most)} more" if len(numbers) > most else ""
    who, was, have = ("rank", "was", "has") if len(numbers) == 1 else ("ranks", "were", "have")
    return [f"{who} {told} {was} not traced, or {have} ended"]
