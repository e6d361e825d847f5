"""Words for messages between ranks. Names are unescaped (hostile)."""

from __future__ import annotations

from ..base.units import plural, share, size
from ..facts import thresholds
from ..model.collectives import UNKNOWN, Messages
from ..rules.late_messages import LateMessages
from .collectives import rank_of, who, why
from .words import listed


def late_messages(found: LateMessages, duration: int) -> str:
    """``Rank 1 of train (pid 4711) holds up others by its messages: rank 2 (pid 4712) waits for 81.5 % of its time for
    150 of them: before, it is blocked in load → read for 1.21 s more than the other 3.`` ``duration``: ns of the
    trace."""
    ranks = found.collectives.ranks
    told = [(each.receiver_waited, each.receiver, each.messages, "for {} of them") for each in found.receivers]
    told += [(each.sender_waited, each.sender, each.messages, "until it takes {}") for each in found.senders]
    told.sort(key=lambda each: (-each[0], each[1]))
    texts = [
        f"{who(ranks[place])} waits {share(time, duration)} of the time {how.format(_number(number, how))}"
        for time, place, number, how in told[: thresholds.RANKS_OUTSIDE]
    ]
    text = f"{rank_of(found.late, found.late.rank)} holds up others by its messages: {listed(texts)}"
    return f"{text}{why(found.excess, len(ranks) - 1)}."


def _number(number: int, how: str) -> str:
    return f"{number:,}" if how.endswith("them") else plural(number, "message")


def exchanged(messages: Messages | None) -> str:
    """``1,200 messages (4 MiB)``; "" without any."""
    if messages is None or not messages.pairs:
        return ""
    number = sum(each.messages for each in messages.pairs)
    sizes = [each.bytes for each in messages.pairs]
    whole = f" ({size(sum(sizes))})" if UNKNOWN not in sizes and any(sizes) else ""
    unknown = sum(each.unjoined for each in messages.pairs) + messages.any_source
    rest = f"; of {plural(unknown, 'message')} it is not known who waited for whom" if unknown else ""
    return f"{plural(number, 'message')}{whole}{rest}"
