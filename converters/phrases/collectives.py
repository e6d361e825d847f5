"""Words for ranks that meet. Names are unescaped (hostile)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..base.units import count, duration, plural, share, size
from ..facts import thresholds
from ..facts.identity import kernel_id
from ..model.collectives import UNKNOWN, CollectiveKind, CollectiveRank, Collectives, Meeting, Standing
from ..model.steps import Spent
from ..rules.late_rank import FOR_GIL, KEPT, QUEUED, RUNS, THROTTLED, WAITS, WANTS, Excess, LateRank


def late_rank(found: LateRank) -> str:
    """``Rank 3 of train (pid 4711) comes 41.0 ms late to 97.0 % of 812 all-reduces (256 MB) of 8 ranks: there it waits
    in load → read for 38.0 ms more than the other 7.``"""
    of = found.collectives
    kinds = (found.kind,) if found.kind else of.kinds
    number = found.kind.meetings if found.kind else of.meetings
    meetings = f"{plural(number, _noun(kinds))}{_size(kinds)} of {plural(len(of.ranks), 'rank')}"
    if found.late is None:
        waited = found.waited // max(number, 1)
        how, few = ("", ", too few to tell whether it is always the same one") if found.few else (" in turn", "")
        return (
            f"The ranks of {of.ranks[0].process} come{how} {duration(found.by)} late (median) to {meetings}{few}: in "
            f"each, they wait {duration(waited)} for each other, all together."
        )
    if found.caused:
        text = (
            f"{rank_of(found.late, found.number)} is the one for which the others wait in {meetings}: it comes last to "
        )
        text += f"{share(found.last, number)} of them, for {share(found.caused, found.waited)} of the time that the "
        return f"{text}ranks wait for each other{why(found.excess, len(of.ranks) - 1)}."
    text = f"{rank_of(found.late, found.number)} comes {duration(found.by)} late (median) to "
    text += f"{share(found.last, number)} of {meetings}"
    return f"{text}{why(found.excess, len(of.ranks) - 1)}."


def rank_of(late: CollectiveRank, number: int) -> str:
    """``Rank 3 of train (pid 4711)``; without its number, ``train (pid 4711)``."""
    named = f"{late.process} (pid {kernel_id(late.pid)})"
    return f"Rank {number} of {named}" if number != UNKNOWN else named


def why(excess: Excess | None, others: int) -> str:
    """``: before, it is blocked in load → read for 38.0 ms more than the other 7``; "" if that is not known."""
    if excess is None or excess.more <= 0:
        return ""
    than = f"the other {count(others)}" if others > 1 else "the other one"
    if excess.kind == KEPT:
        return f": it comes so much later out of the one before, and does no more than {than} in between"
    where = f" in {' → '.join(excess.site.frames)}" if excess.site and excess.site.frames else ""
    does = {RUNS: "it runs", QUEUED: "it waits for a core", THROTTLED: "it waits for a core, as a quota stops it,"}
    does |= {FOR_GIL: "it waits for Python's interpreter lock (GIL)", WANTS: "it runs, or waits for a core to,"}
    what = does.get(excess.kind, "it is blocked")
    return f": before, {what}{where} for {duration(excess.more)} more than {than}"


def _noun(kinds: Sequence[CollectiveKind]) -> str:
    """The operation of all these meetings, if there is one."""
    names = {kind.what for kind in kinds}
    return names.pop() if len(names) == 1 else "collective"


def _size(kinds: Sequence[CollectiveKind]) -> str:
    sizes = {kind.bytes for kind in kinds}
    (each,) = sizes if len(sizes) == 1 else (UNKNOWN,)
    return f" ({size(each)})" if each > 0 else ""


def stands_still(of: Collectives) -> str:
    """``Ranks of train stand still in all-reduce 26 (4 KB): 3 of 4 are in it, for 1.9 s; rank 1 (pid 12) is not: it …``
    "" if they do not."""
    if not of.standing:
        return ""
    told = [each for each in zip(of.ranks, of.standing, strict=True) if each[1].what]
    alike = Counter(_key(each) for _, each in told)
    first = max((each for _, each in told), key=lambda each: alike[_key(each)])
    text = f"The ranks of {of.ranks[0].process} stand still in {first.what} {first.number}{_bytes(first)}: "
    text += f"{count(alike[_key(first)])} of {count(len(of.ranks))} are in it"
    pairs = zip(of.ranks, of.standing, strict=True)
    others = [(rank, each) for rank, each in pairs if not each.what or _key(each) != _key(first)]
    rest = [f"{who(rank)} {_instead(each, first)}" for rank, each in others[: thresholds.RANKS_OUTSIDE]]
    more = len(others) - len(rest)
    rest += [f"nor {'is' if more == 1 else 'are'} {plural(more, 'other')}"] if more > 0 else []
    return f"{text}; {'; '.join(rest)}." if rest else f"{text}."


def crossed(circle: Sequence[Collectives]) -> str:
    """``Two communicators of train wait for each other: rank 1 (pid 12) is in all-reduce 26 of one, rank 0 (pid 11) is
    in all-reduce 26 of the other: they call them in different orders.``"""
    inside = [[pair for pair in zip(of.ranks, of.standing, strict=False) if pair[1].what] for of in circle]
    process = circle[0].ranks[0].process
    if len(circle) > 2:
        told = [f"{_inside_of(pairs)} of one" for pairs in inside[: thresholds.COMMUNICATORS_SHOWN]]
        more = len(inside) - len(told)
        told += [f"and so on, {count(more)} more"] if more else []
        text = f"{count(len(circle))} communicators of {process} wait for each other in a circle: {'; '.join(told)}"
    else:
        told = [f"{_inside_of(pairs)} of {which}" for pairs, which in zip(inside, ("one", "the other"), strict=True)]
        text = f"Two communicators of {process} wait for each other: {', '.join(told)}"
    return f"{text}: they call them in different orders."


def _inside_of(inside: Sequence[tuple[CollectiveRank, Standing]]) -> str:
    first = inside[0][1]
    return (
        f"{_ranks([rank for rank, _ in inside])} {'is' if len(inside) == 1 else 'are'} in {first.what} {first.number}"
    )


def _ranks(ranks: Sequence[CollectiveRank]) -> str:
    """``rank 0 (pid 11)``, ``ranks 0, 1, 2 … 7``: many by their numbers, the last one with them."""
    if len(ranks) <= thresholds.RANKS_OUTSIDE:
        return ", ".join(map(who, ranks))
    known = all(rank.rank != UNKNOWN for rank in ranks)
    each = [str(rank.rank if known else kernel_id(rank.pid)) for rank in ranks]
    few = ", ".join(each[: thresholds.RANKS_OUTSIDE])
    left = len(each) - thresholds.RANKS_OUTSIDE
    return f"{'ranks' if known else 'pids'} {few}{' …' if left > 1 else ','} {each[-1]}"


def _key(each: Standing) -> tuple[str, int, int]:
    return each.what, each.bytes, each.number


def _bytes(each: Standing) -> str:
    return f" ({size(each.bytes)})" if each.bytes > 0 else ""


def named(rank: CollectiveRank) -> str:
    """``rank 1``, ``pid 12``: without what a sentence before has told."""
    return f"rank {rank.rank}" if rank.rank != UNKNOWN else f"pid {kernel_id(rank.pid)}"


def who(rank: CollectiveRank) -> str:
    """``rank 3 (pid 4711)``"""
    pid = kernel_id(rank.pid)
    return f"rank {rank.rank} (pid {pid})" if rank.rank != UNKNOWN else f"pid {pid}"


def _instead(each: Standing, first: Standing) -> str:
    if each.what and each.number != first.number:
        return f"is in {each.what} {each.number}{_bytes(each)}"
    if each.what:
        return f"calls {each.what}{_bytes(each)} instead"
    if each.has_ended:
        return f"has ended after its collective {each.number}" if each.number else "has ended"
    since = f"has not come since its collective {each.number}" if each.number else "has called none"
    if each.elsewhere:
        return f"{since}: it is in {each.elsewhere}"
    spent = each.meanwhile if each.number else None
    return f"{since}: {does(spent, each.stopped)}" if spent else since


def does(spent: Spent, stopped: int = 0) -> str:
    """``for 1.90 s, of which it is blocked in forgets → nanosleep for 99.9 %``: what it does most. ``stopped``: ns of
    its blocked time."""
    wait = spent.waits[0] if spent.waits else None
    most = max((spent.on_cpu, RUNS), (spent.blocked, WAITS), (spent.runnable, QUEUED))
    frames, time = (spent.ran[0].frames if spent.ran else ()), spent.on_cpu
    if most[1] == WAITS:
        frames, time = (wait.site.frames, wait.time) if wait else ((), spent.blocked)
    elif most[1] == QUEUED:
        frames, time = (), spent.runnable
    what = {RUNS: "runs", QUEUED: "waits for a core"}.get(most[1], "is blocked")
    if most[1] == WAITS and stopped > spent.blocked - stopped:
        what, time = "is stopped", stopped
    where = f" in {' → '.join(frames)}" if frames else ""
    return f"for {duration(spent.wall)}, of which it {what}{where} for {share(time, spent.wall)}"


def kind_text(kind: CollectiveKind | Meeting) -> str:
    """``all-reduce (4 KB)``"""
    return f"{kind.what} ({size(kind.bytes)})" if kind.bytes > 0 else kind.what
