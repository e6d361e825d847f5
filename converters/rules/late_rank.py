"""A rank comes late to the collectives of its communicator, and all others wait for it; or ranks do in turn.

The user asked for collectives, or a scan saw them: what a rank does between two meetings says why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import exp, lgamma, log
from statistics import median
from sys import float_info
from typing import NamedTuple

from ..facts import thresholds
from ..facts.collective_kinds import judged, often
from ..facts.facts import Facts
from ..facts.troubled_connections import troubled
from ..facts.wait_functions import TAKE_GIL
from ..model.collectives import UNKNOWN, CollectiveKind, CollectiveRank, Collectives
from ..model.losses import NOT_TAKEN
from ..model.sites import Site
from ..model.steps import Spent, StepRun
from . import quota
from .verdict import LATE_RANK, Verdict

RULE = "late-rank"
RUNS, WANTS, WAITS, QUEUED, THROTTLED, FOR_GIL = "runs", "wants", "waits", "queued", "throttled", "for-gil"
KEPT = "kept"


class Excess(NamedTuple):
    """Time of a rank before a meeting beyond that of the others; ns for each meeting."""

    kind: str
    """`RUNS`: on a core; `WANTS`: on a core, and so without one, too; `WAITS`: blocked; `QUEUED`: without a core;
    `THROTTLED`: so, and a quota stops its process; `FOR_GIL`: blocked by other threads of Python, in all places
    together; `KEPT`: it comes so much later out of the operation before, and does hardly more than they do."""
    more: int
    """Time beyond that of the median of the other ranks."""
    site: Site | None = None
    """Place, or the one with most of it; None: no place tells, or of `QUEUED` and `THROTTLED`."""


class LateRank(NamedTuple):
    """The detail of such a verdict."""

    collectives: Collectives
    late: CollectiveRank | None
    """The rank that mostly comes last; None: ranks come last in turn, or there are too few meetings to tell."""
    by: int
    """Median time in ns from the first arrival to the last one."""
    excess: Excess | None = None
    """Cause: what the rank does meanwhile; None: that is not known."""
    number: int = UNKNOWN
    """Number of the late rank in its communicator, or, if that is not known, in its job."""
    kind: CollectiveKind | None = None
    """Operation that is judged; None: all of them together."""
    last: int = 0
    """Meetings of this kind to which the late rank came last."""
    waited: int = 0
    """Time in ns that ranks wait for each other in them."""
    few: bool = False
    """Whether one comes last to most of the meetings, which may be chance: there are few."""
    caused: int = 0
    """Time in ns for which others wait for the late rank, if that is most of ``waited`` though it comes last to few of
    the meetings; 0: it comes last to most of them."""


def without_turns(verdicts: list[Verdict], _facts: Facts) -> list[Verdict]:
    """Leaves out ranks that come in turn, if a quota stops threads of theirs: these keep the others waiting wherever
    they are, before an operation or in it, so that it tells little who comes last."""
    stopped = {pid for each in verdicts if each.rule == quota.RULE for pid in each.pids}
    return [each for each in verdicts if not (_in_turn(each) and each.pids & stopped)]


def _in_turn(verdict: Verdict) -> bool:
    return isinstance(verdict.detail, LateRank) and verdict.detail.late is None


class _Arrival(NamedTuple):
    """Arrivals of a rank at the meetings that are judged. Times in ns, see `CollectiveRank`."""

    last: int
    late: int
    waited: int


def find(facts: Facts) -> list[Verdict]:
    """One for each communicator whose ranks wait for each other for much of the time."""
    return [verdict for each in facts.collectives if (verdict := _verdict(facts, each))]


def _verdict(facts: Facts, of: Collectives) -> Verdict | None:
    if of.meetings < thresholds.MEETINGS or not of.ranks:
        return None
    kind = judged(of.kinds)
    by_kind = [sum(each.waited) for each in often(of.kinds)] if kind else []
    waited = sum(by_kind or (each.waited for each in of.ranks))
    if waited < thresholds.SIGNIFICANT * len(of.ranks) * facts.duration:
        return None
    arrivals = _arrivals(of, kind)
    place = max(range(len(arrivals)), key=lambda place: (arrivals[place].last, arrivals[place].late))
    last = of.ranks[place]
    spread = kind.spread if kind else of.spread
    meetings = kind.meetings if kind else of.meetings
    is_one = _is_late(arrivals, place, meetings, 0 if kind else of.deviation)
    is_one = is_one and _matters(arrivals, place, spread, facts.duration)
    few = is_one and _chance(arrivals[place].last, meetings, len(arrivals)) > thresholds.LATE_BY_CHANCE
    is_one = is_one and not few
    caused = 0
    if not is_one and not few and kind and (found := _causes_most(kind)) is not None:
        place, is_one, caused = found, True, kind.caused[found]
        last = of.ranks[place]
    excess = _excess(facts, of, last) if is_one else None
    lateness = caused // (arrivals[place].last * (len(arrivals) - 1)) if caused and arrivals[place].last else spread
    if excess and _is_kept(of, last, excess, lateness):
        excess = Excess(KEPT, lateness)
    pids = frozenset(each.pid for each in of.ranks)
    if (excess is None or excess.kind == KEPT) and troubled(facts, pids):
        return None  # who comes last is decided by the network
    number = last.rank if last.rank != UNKNOWN else facts.ranks.get(last.pid, UNKNOWN)
    detail = LateRank(
        of,
        last if is_one else None,
        spread,
        excess,
        number,
        kind,
        arrivals[place].last,
        sum(each.waited for each in arrivals),
        few,
        caused,
    )
    return Verdict(RULE, LATE_RANK, waited, 1, pids, detail=detail)


def _causes_most(kind: CollectiveKind) -> int | None:
    """The rank for which the others wait for most of the time, in few meetings perhaps; None if there is none, or if it
    may be chance, as one of them can have most of the time."""
    if not any(kind.caused):
        return None
    place = max(range(len(kind.caused)), key=lambda place: kind.caused[place])
    part = kind.caused[place] / sum(kind.caused)
    if part < thresholds.CAUSES_MOST or not kind.alike:
        return None
    return place if _chance(int(part * kind.alike), kind.alike, len(kind.caused)) <= thresholds.LATE_BY_CHANCE else None


def _arrivals(of: Collectives, kind: CollectiveKind | None) -> list[_Arrival]:
    """One for each rank, to the meetings of this kind, or to all."""
    if kind:
        return [_Arrival(*each) for each in zip(kind.last, kind.lateness, kind.waited, strict=True)]
    return [_Arrival(each.last, each.late, each.waited) for each in of.ranks]


def _is_late(arrivals: list[_Arrival], place: int, meetings: int, deviation: int) -> bool:
    """Whether the rank at this place, which came last most often, is the one for which the others wait. Of two ranks,
    the MAD is half of what is between them, whatever that is: how often one came last is all there is."""
    mine = arrivals[place]
    others = [each for number, each in enumerate(arrivals) if number != place]
    if len(arrivals) == 2:
        return mine.last >= thresholds.LATE_OF_TWO * meetings
    beyond = mine.late - median(each.late for each in others)
    middle = median(each.late for each in arrivals)
    scatter = deviation or median(abs(each.late - middle) for each in arrivals)
    return mine.last >= thresholds.LATE_MOSTLY * meetings and beyond > thresholds.LATE_BEYOND * scatter


def _chance(last: int, meetings: int, ranks: int) -> float:
    """Most that the probability can be that any one of so many ranks comes last to so many meetings or more, if each
    comes last to each of them as likely: the tail of the binomial distribution, times the number of ranks."""
    last, share = min(last, meetings), 1 / ranks
    ways = lgamma(meetings + 1) - lgamma(last + 1) - lgamma(meetings - last + 1)
    whole = part = exp(ways + last * log(share) + (meetings - last) * log(1 - share))
    while last < meetings and part > whole * float_info.epsilon:
        part *= (meetings - last) / (last + 1) * share / (1 - share)
        last += 1
        whole += part
    return ranks * whole


def _matters(arrivals: list[_Arrival], place: int, spread: int, length: int) -> bool:
    """Whether the waits are for the rank at this place, or those for it matter by themselves: others may be late
    seldom, but by more, so that it waits longer than they do."""
    others = [each.waited for number, each in enumerate(arrivals) if number != place]
    return arrivals[place].waited <= median(others) or (
        spread * arrivals[place].last >= thresholds.SIGNIFICANT * length
    )


def _is_kept(of: Collectives, late: CollectiveRank, excess: Excess, lateness: int) -> bool:
    """Whether what the rank does between two meetings takes hardly longer than what the others do, and is nothing else:
    it leaves them later. Where it is not known when operations are done, all ranks take as long, as they wait there."""
    mine, others = _between(of, late)
    least = thresholds.LATE_ITSELF * lateness
    if not mine or not others or excess.more >= least:
        return False
    return mine.mean - median(each.mean for each in others) < least


def _between(of: Collectives, late: CollectiveRank) -> tuple[Spent | None, list[Spent]]:
    """Times of the late rank before it comes late, and those of the others."""
    mine = late.between_late or late.before or late.between
    return mine, [spent for each in of.ranks if each is not late and (spent := each.before or each.between)]


def _excess(facts: Facts, of: Collectives, late: CollectiveRank) -> Excess | None:
    """The largest of what the late rank does for longer than the others."""
    mine, others = _between(of, late)
    return excess_of(facts, late, mine, others)


def excess_of(facts: Facts, late: CollectiveRank, mine: Spent | None, others: list[Spent]) -> Excess | None:
    """The largest of what a rank does for longer than the median of others; None if that is not known. ``mine``: its
    times."""
    if not mine or not mine.count or not others:
        return None
    found = max(_parts(mine, others, _for_gil(facts, late)), key=lambda each: each.more, default=None)
    found = _by_quota(facts, late.pid, found)
    return _to_run(mine, others, found) if found and found.kind == QUEUED else found


def _to_run(mine: Spent, others: list[Spent], excess: Excess) -> Excess:
    """Tells that the rank runs for longer than the others, if that is why it waits for a core for longer: it is no use
    to compare how long they wait, as those that run shortly get one sooner."""
    usual = median(each.on_cpu / each.count for each in others)
    more = mine.on_cpu / mine.count - usual
    whole = excess.more + round(more)
    if more < thresholds.RUNS_MORE * usual or more < thresholds.RUNS_PART * whole:
        return excess
    return Excess(WANTS, whole, _ran_more(mine, others))


def _ran_more(mine: Spent, others: list[Spent]) -> Site | None:
    """Place in which the rank runs for longer than the others, by samples; None if there are none."""

    def beyond(ran: StepRun) -> float:
        usual = ({each.frames: each.samples for each in of.ran}.get(ran.frames, 0) for of in others)
        times = (of.estimated(samples) / of.count for of, samples in zip(others, usual, strict=True))
        return mine.estimated(ran.samples) / mine.count - median(times)

    most = max(mine.ran, key=beyond, default=None)
    return Site(most.frames, "") if most else None


def _by_quota(facts: Facts, pid: int, excess: Excess | None) -> Excess | None:
    """Tells that a quota stops the rank, if that is why it has no core."""
    if excess is None or excess.kind != QUEUED:
        return excess
    mine = (each for each in facts.contention if pid in each.pids)
    stops = any(quota.throttles(limit, each.duration) for each in mine for limit in each.limits)
    return excess._replace(kind=THROTTLED) if stops else excess


def _for_gil(facts: Facts, late: CollectiveRank) -> frozenset[Site]:
    """Places in which the rank's thread waits for Python's interpreter lock."""
    places = facts.waits_of((late.pid, late.tid))
    return frozenset(place.site for place in places if place.wait.lock == TAKE_GIL)


def _parts(mine: Spent, others: list[Spent], for_gil: frozenset[Site]) -> Iterator[Excess]:
    """``for_gil``: places of waits that have one cause."""
    blocked, usual = _blocked(mine), [(_blocked(each), each.count) for each in others]
    for site in (each for each in blocked if each not in for_gil):
        yield Excess(WAITS, _beyond([site], blocked, mine.count, usual), site)
    if held := for_gil & blocked.keys():
        most = max(held, key=lambda site: (blocked[site], site))
        yield Excess(FOR_GIL, _beyond(held, blocked, mine.count, usual), most)
    runs = mine.on_cpu // mine.count - _median(each.on_cpu // each.count for each in others)
    yield Excess(RUNS, runs, _ran_more(mine, others))
    yield Excess(QUEUED, mine.runnable // mine.count - _median(each.runnable // each.count for each in others))


def _beyond(
    sites: Collection[Site], blocked: Mapping[Site, int], count: int, usual: list[tuple[Mapping[Site, int], int]]
) -> int:
    """ns for each meeting in these places beyond what the others wait there. ``usual``: times of each of them, and the
    number of its meetings."""
    mine = sum(blocked[site] for site in sites) // count
    return mine - _median(sum(times.get(site, 0) for site in sites) // number for times, number in usual)


def _blocked(spent: Spent) -> Mapping[Site, int]:
    """Times by place. Those of waits whose stacks were left out are told of the places with the same function of the
    kernel, in proportion: see `shed_stacks`."""
    found = {wait.site: wait.time for wait in spent.waits if wait.site.frames[:1] != (NOT_TAKEN,)}
    for wait in spent.waits:
        if wait.site.frames[:1] == (NOT_TAKEN,):
            alike = {site: time for site, time in found.items() if site.kernel == wait.site.kernel}
            whole = sum(alike.values())
            found |= {site: time + wait.time * time // whole for site, time in alike.items()} or {wait.site: wait.time}
    return found


def _median(numbers: Iterator[int]) -> int:
    return round(median(list(numbers)))
