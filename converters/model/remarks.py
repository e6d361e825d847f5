"""Remarks on a profile beside its figures, as codes with arguments: `phrases.remarks` words them.

A comment of a profile is a `Remark`, or text that nothing looks into. Names in both are hostile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Remark:
    """The base of all."""


Comment: TypeAlias = str | Remark


@dataclass(frozen=True)
class SamplesLeftOut(Remark):
    """The engine could not sample as often as it was asked to."""

    number: int
    """Number of samples that were left out, of each process."""


@dataclass(frozen=True)
class NotSampled(Remark):
    """Reason why running threads have no samples."""


@dataclass(frozen=True)
class TooShort(NotSampled):
    """Running threads ran for too short a time."""

    on_cpu: int
    """ns on cores of all threads together."""
    frequency: int
    """Samples per second of a running thread."""
    expected: int
    """Number of samples to expect of ``on_cpu`` at ``frequency``."""


@dataclass(frozen=True)
class KernelHidden(NotSampled):
    """Running threads ran in the kernel, which this user may not sample."""

    level: int
    """kernel.perf_event_paranoid."""


@dataclass(frozen=True)
class WaitsHidden(Remark):
    """Remark that this user may not see waits."""

    command: str
    """Command that would tell the waits: ``sudo trace-wall``."""


@dataclass(frozen=True)
class EventsLost(Remark):
    """perf lost events."""

    lost: int
    taken: int
    """Events that it has not lost."""
    sampled: bool
    """Whether there were samples, so that fewer of them would help."""
    careful: bool
    """Whether so many were lost that the remark has to be read first."""


@dataclass(frozen=True)
class ProbesCost(Remark):
    """SystemTap's probes took much of the cores' time."""

    time: int
    of: int
    """ns of ``cores``."""
    cores: int
    careful: bool


TRACER = "tracer"
"""Part of the cost of a trace that is not its probes'."""
_MILLION = 1_000_000


@dataclass(frozen=True)
class TraceCost(Remark):
    """Cost of the trace: what its probes took of the time of the traced threads, and what the tracer took."""

    time: int
    """ns that tracing took."""
    of: int
    """ns of the traced threads on cores."""
    parts: tuple[tuple[str, int], ...]
    """Parts of ``time``, the largest first: ``samples``, ``calls``, ``wakers``, ``locks``, ``ioctls``, ``waits``,
    ``others``; `TRACER`: what the tracer itself ran while no core was idle."""
    budget: int
    """Millionths of ``whole`` that the probes may take."""
    length: int = 0
    """ns for which it was measured; 0: it is not known."""

    @property
    def whole(self) -> int:
        """Time in ns that the budget is a share of: ``of``, but that of one core at least, see `Window.whole`."""
        return max(self.of, self.length)

    @property
    def tracer(self) -> int:
        """ns that the tracer itself took."""
        return sum(part for name, part in self.parts if name == TRACER)

    @property
    def probes(self) -> int:
        """ns that the probes took."""
        return self.time - self.tracer

    @property
    def is_within(self) -> bool:
        """Whether the probes took no more than the budget."""
        return self.probes * _MILLION <= self.budget * self.whole


@dataclass(frozen=True)
class Shed(Remark):
    """Part of a measure that was left out from some time on, because the trace cost too much."""

    what: str
    """``samples``, ``calls``, ``page faults``, ``stacks`` (of waits), ``waker stacks``, ``wakers``, ``locks``,
    ``ioctls``."""
    at: int
    """ns from the beginning of the trace, or of the interval."""
    times: int
    """Factor by which samples, or user stacks of waits, are rarer than at the beginning; 0 for others."""
    frequency: int
    """Samples per second at the beginning; 0 for others."""
    functions: tuple[tuple[str, int], ...]
    """Functions that lost their probes, and their calls per second until then; () for others."""
    more: int
    """Number of functions that are not named."""
    within: int = 0
    """Waits that are meant: of threads that had waited less than so many ns before; 0: all, or something else."""
    before: int = 0
    """ns from then to the beginning of the interval, if it was left out in an earlier one and still is; else 0."""


@dataclass(frozen=True)
class Joined(Remark):
    """A process that was not chosen, and was traced from some time on, since traced ones waited for it."""

    name: str
    pid: int
    at: int
    """ns from the beginning of the trace."""


@dataclass(frozen=True)
class FramesNameless(Remark):
    """Files of frames without a name."""

    places: tuple[tuple[str, int], ...]
    """Files, and how many frames, the most first."""
    elsewhere: int
    """Number of such frames in other files."""


@dataclass(frozen=True)
class SwitchesUnseen(Remark):
    """Waits of which the kernel did not report a switch."""

    number: int


@dataclass(frozen=True)
class TablesFull(Remark):
    """The kernel side's tables were too small."""


@dataclass(frozen=True)
class UnwindTablesFull(Remark):
    """The unwind tables needed more memory than they may take."""


@dataclass(frozen=True)
class BufferFull(Remark):
    """The ring buffer was too small."""


@dataclass(frozen=True)
class Kept(Remark):
    """Steps of a conversion left a part of a value."""

    left: int
    whole: int
    value: str
    steps: tuple[str, ...]
    """Steps as they were typed: ``--focus topk``."""


@dataclass(frozen=True)
class FirstSkipped(Remark):
    """The first place of an input that could not be read."""

    name: str
    """Name of the input."""
    unit: str
    """Name of what is counted: ``line``, ``event``."""
    number: int
    expected: str
    """Text that should have been there."""


@dataclass(frozen=True)
class RecordingLeftOut(Remark):
    """Spans of a Chrome trace for the recording itself."""

    spans: tuple[str, ...]
    event: str
    """The event that shows them, for ``--event-filter``."""


@dataclass(frozen=True)
class AddedUp(Remark):
    """Sums that the reader may not expect."""


@dataclass(frozen=True)
class InputsAddedUp(AddedUp):
    """Processes of one name and id in several inputs."""

    names: tuple[str, ...]
    """Names of the first inputs."""
    more: int
    label: str
    """The label that tells them apart."""


@dataclass(frozen=True)
class TracksAddedUp(AddedUp):
    """Times of several tracks."""

    tracks: int
    inputs: int
    length: int
    """ns of the longest input; 0 if that is not known."""


@dataclass(frozen=True)
class OfSide(Remark):
    """A comment on one side of a comparison."""

    side: str
    comment: Comment


CODES: dict[str, type[Remark]] = {
    "samples-left-out": SamplesLeftOut,
    "too-short": TooShort,
    "kernel-hidden": KernelHidden,
    "waits-hidden": WaitsHidden,
    "events-lost": EventsLost,
    "probes-cost": ProbesCost,
    "trace-cost": TraceCost,
    "shed": Shed,
    "joined": Joined,
    "frames-nameless": FramesNameless,
    "switches-unseen": SwitchesUnseen,
    "tables-full": TablesFull,
    "unwind-tables-full": UnwindTablesFull,
    "buffer-full": BufferFull,
    "kept": Kept,
    "first-skipped": FirstSkipped,
    "recording-left-out": RecordingLeftOut,
    "inputs-added-up": InputsAddedUp,
    "tracks-added-up": TracksAddedUp,
    "of-side": OfSide,
}
"""Name of each remark in files."""
_CODE_OF = {made: code for code, made in CODES.items()}


def is_caveat(comment: Comment) -> bool:
    """Whether it has to be read before all else."""
    return isinstance(comment, EventsLost | ProbesCost) and comment.careful


def names_nothing(comment: Comment) -> bool:
    """Whether it consists of numbers only."""
    return not isinstance(comment, str) and all(isinstance(getattr(comment, f.name), int) for f in fields(comment))


def without_side(comment: Comment) -> Comment:
    """Remark on a side of a comparison, or on a profile."""
    while isinstance(comment, OfSide):
        comment = comment.comment
    return comment


def side_of(comment: Comment) -> str:
    """``before``; "" if it is not on a side of a comparison."""
    return comment.side if isinstance(comment, OfSide) else ""


def plain(comments: Iterable[Comment], escape: Callable[[str], str] = str) -> list[Any]:
    """Comments for JSON: texts, and an object for each remark, with its ``code``. ``escape`` is done to all texts."""
    return [_plain(each, escape) for each in comments]


def _plain(value: Any, escape: Callable[[str], str]) -> Any:
    if isinstance(value, Remark):
        arguments = {field.name: _plain(getattr(value, field.name), escape) for field in fields(value)}
        return {"code": _CODE_OF[type(value)], **arguments}
    if isinstance(value, tuple):
        return [_plain(each, escape) for each in value]
    return escape(value) if isinstance(value, str) else value
