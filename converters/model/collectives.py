"""Collectives of communicators: who came late, and what it did before; who is still inside."""

from __future__ import annotations

from dataclasses import dataclass

from .steps import Spent

UNKNOWN = -1
"""Rank, size or number of bytes that is not known."""


@dataclass(frozen=True, slots=True)
class CollectiveRank:
    """A rank of a communicator. Times in ns; names are hostile."""

    rank: int
    """Number in its communicator; `UNKNOWN`: the communicator was made before the trace."""
    pid: int
    process: str
    tid: int
    """The thread that made most of its calls."""
    calls: int
    """Collectives that it began."""
    last: int
    """Meetings to which it came last, of those to which all came."""
    late: int
    """Median of its arrivals after the median of all ranks, in the same meetings; below 0 for earlier ones."""
    waited: int
    """Time from its arrivals to those of the last ones, at most to its own next one, or to the end of a call that waits
    itself."""
    between: Spent | None = None
    """Times of its thread from the end of each meeting to its next arrival; None: events were not recorded."""
    between_late: Spent | None = None
    """Part of ``before``: before the meetings to which it came last."""
    before: Spent | None = None
    """Part of ``between``: before the meetings of the operation that `facts.collective_kinds.judged` names; None: of
    all meetings, or in a capture of an earlier version."""


@dataclass(frozen=True, slots=True)
class CollectiveKind:
    """Meetings in one operation of one size, to which all ranks came. Times in ns."""

    what: str
    """``all-reduce``"""
    bytes: int
    meetings: int
    spread: int
    """Median time from the first arrival to the last one."""
    longest: int
    """The longest of them."""
    total: int
    """Sum of all."""
    last: tuple[int, ...] = ()
    """Meetings of this kind to which each rank came last, in the order of the ranks; (), and so are the next ones: in a
    capture of an earlier version."""
    lateness: tuple[int, ...] = ()
    """Median of each rank's arrivals after the median of all ranks; below 0 for earlier ones."""
    waited: tuple[int, ...] = ()
    """Time of each rank from its arrivals to those of the last ones."""
    took: int = UNKNOWN
    """Median time from the last arrival to the last end of a call; `UNKNOWN`: calls do not wait until the operation is
    done, or in a capture of an earlier version."""
    caused: tuple[int, ...] = ()
    """Time for which others wait for each rank, in the meetings to which it comes last; (): in a capture of an earlier
    version."""
    alike: int = 0
    """Number of meetings with equal waits that leave as much to chance as these: 1 if one of them has all the time."""

    @property
    def bandwidth(self) -> int:
        """Bytes of a rank by the time that the operation took, for a second; `UNKNOWN` if one of these is."""
        return self.bytes * 1_000_000_000 // self.took if self.bytes > 0 and self.took > 0 else UNKNOWN


@dataclass(frozen=True, slots=True)
class Meeting:
    """One of the meetings with the longest spread."""

    number: int
    """Place among the communicator's collectives in the trace, from 1 on."""
    what: str
    bytes: int
    arrivals: tuple[int, ...]
    """ns since the trace began, in the order of the ranks."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Place of a rank when the trace ended, if its communicator stood still."""

    pid: int
    number: int
    """The collective that it is in, or, if it is in none, its last one; 0: it made none."""
    what: str
    """Operation that it is in; "" if it is in none."""
    bytes: int
    since: int
    """ns since the trace began: begin of the call; or the end of the last one; 0 if it made none."""
    has_ended: bool = False
    """Whether its process has ended. Captures of an earlier version have this and the next ones as they are here."""
    meanwhile: Spent | None = None
    """Times of its thread since then, if it is in none; None: events were not recorded."""
    stopped: int = 0
    """Part of the blocked time of ``meanwhile``: stopped by a signal or a debugger."""
    elsewhere: str = ""
    """Call of another communicator, or of a message, in which its thread is: ``MPI_Recv``; "" if it is in none."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A process of which a trace has seen all calls of the functions of its communication libraries."""

    pid: int
    calls: int
    """Calls that began, in all of its threads; those that only ask for a state are left out."""


@dataclass(frozen=True, slots=True)
class MessagePair:
    """Messages from one rank of a communicator to another one. Times in ns."""

    sender: int
    """Place among the ranks."""
    receiver: int
    messages: int
    """Messages of which both the send and the receive are known."""
    bytes: int
    """Sum over these; `UNKNOWN` if that of one is."""
    waits: int
    """Messages of these that the receiver waited for: it came first."""
    receiver_waited: int
    """Time for which it waited until these were sent, and for one that has not been sent yet."""
    sender_waited: int
    """Time for which the sender waited until the receiver came, where a send waits for that."""
    unjoined: int = 0
    """Sends or receives, whichever are more, of which the other part is not known, though there may be one."""


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages between the ranks of a communicator."""

    pairs: tuple[MessagePair, ...]
    """Pairs of ranks, those of most waits first."""
    between: tuple[Spent | None, ...]
    """Times of each rank's thread from the end of each of its calls to its next message; None: not known."""
    any_source: int = 0
    """Receives of which it is not known whose message they took: they asked for that of any rank."""
    unseen: int = 0
    """Messages with ranks that were not seen here."""


@dataclass(frozen=True, slots=True)
class Collectives:
    """One communicator. Ranks are in their order, or, if that is not known, in that of their process ids."""

    library: str
    """``NCCL``, ``MPI``, ``Gloo``"""
    size: int
    """Number of ranks, those of other hosts included; `UNKNOWN`: it was made before the trace."""
    is_known: bool
    """Whether the trace has seen how it was made. Else those are put together whose calls fit."""
    meetings: int
    """Collectives to which all ranks of this host came."""
    spread: int
    """Median time in ns from the first arrival to the last one."""
    deviation: int
    """MAD of the ranks' median lateness, in ns."""
    ranks: tuple[CollectiveRank, ...]
    kinds: tuple[CollectiveKind, ...]
    """Operations, those of most time first."""
    worst: tuple[Meeting, ...] = ()
    """Meetings with the longest spread, these first; others are left out."""
    standing: tuple[Standing, ...] = ()
    """One for each rank, if some are in a collective to which others did not come; empty otherwise."""
    lost: int = 0
    """Calls that could not be kept, of all communicators."""
    messages: Messages | None = None
    """None: there are none, or the numbers of the ranks are not known; or in a capture of an earlier version."""
    unsure: int = 0
    """Other ranks that may be of this communicator: their calls fit, but those of others, too."""
