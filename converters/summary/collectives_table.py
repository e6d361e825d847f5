"""The ranks of each communicator: how late they come, and how long they wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..base.text import printable
from ..base.units import count, duration, plural, share, size
from ..facts import thresholds
from ..facts.identity import kernel_id
from ..model.collectives import UNKNOWN, CollectiveKind, CollectiveRank, Collectives, Standing
from ..phrases.collectives import does, kind_text
from ..phrases.messages import exchanged
from .tables import table

if TYPE_CHECKING:
    from rich.table import Table


def collectives_tables(found: Sequence[Collectives], top: int) -> list[Table]:
    """A table for each of the first communicators, with a row for each rank."""
    return [_ranks(each, top) for each in found[: thresholds.COMMUNICATORS_SHOWN]]


def met_in(of: Collectives) -> str:
    """``4 ranks met in 812 × all-reduce (256 MiB) at 1.2 GiB/s``. Names are unescaped (hostile)."""
    kinds = ", ".join(map(_kind, of.kinds[: thresholds.KINDS_SHOWN]))
    whole = f" of {of.size}" if of.size not in (UNKNOWN, len(of.ranks)) else ""
    sent = exchanged(of.messages)
    ranks = f"{plural(len(of.ranks), 'rank')}{whole}"
    if sent and not kinds:
        return f"{ranks} sent {sent}"
    return f"{ranks} met in {kinds or 'nothing'}{'; they sent ' if sent else ''}{sent}"


def known_by(of: Collectives) -> str:
    """Words to follow that, if nothing but the calls tells which ranks meet; else ""."""
    if of.is_known:
        return ""
    also = f"; {plural(of.unsure, 'other rank')} may meet there, too" if of.unsure else ""
    return f"; which ranks meet is known by their calls only{also}"


def _ranks(of: Collectives, top: int) -> Table:
    last = printable(met_in(of) + known_by(of))
    made = table("Rank", "Last", "Late", "Waited", "Calls", "Between", last=last)
    places = of.standing or (None,) * len(of.ranks)
    pairs = sorted(zip(of.ranks, places, strict=True), key=lambda pair: (-pair[0].last, pair[0].rank, pair[0].pid))
    for each, place in pairs[: max(top, 1)]:
        between = duration(each.between.mean) if each.between else "-"
        number = str(each.rank) if each.rank != UNKNOWN else "-"
        late = ("-" if each.late < 0 else "") + duration(abs(each.late))
        made.add_row(
            number,
            share(each.last, of.meetings) if of.meetings else "-",
            late,
            duration(each.waited),
            count(each.calls),
            between,
            _who(each, place),
        )
    return made


def _kind(kind: CollectiveKind) -> str:
    """``812 × all-reduce (256 MiB) at 1.2 GiB/s``"""
    rate = f" at {size(kind.bandwidth)}/s" if kind.bandwidth != UNKNOWN else ""
    return f"{count(kind.meetings)} × {kind_text(kind)}{rate}"


def _who(rank: CollectiveRank, place: Standing | None) -> str:
    text = f"{printable(rank.process)} (pid {kernel_id(rank.pid)})"
    if place and place.has_ended:
        return f"{text}: has ended"
    if place and place.elsewhere:
        return f"{text}: has not come; it is in {printable(place.elsewhere)}"
    if place and place.meanwhile:
        return f"{text}: has not come {printable(does(place.meanwhile, place.stopped))}"
    wait = rank.between.waits[0] if rank.between and rank.between.waits else None
    if wait and rank.between and wait.site.frames:
        where = " → ".join(map(printable, wait.site.frames))
        text += f": between, {share(wait.time, rank.between.wall)} in {where}"
    return text
