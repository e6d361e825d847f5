"""Remarks in words. Names are unescaped (hostile)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..base.units import count, duration, plural, share
from ..facts import thresholds
from ..model import remarks
from ..model.losses import NAMELESS
from ..model.remarks import Comment, NotSampled

CAREFUL = "Careful: "
_MILLION, _NSEC = 1_000_000, 1_000_000_000
_PARTS = {"waits": "switches of threads", "tracer": "the tracer itself"}
"""Parts of the cost whose names would not be understood."""
_SHED = {
    "waker stacks": "where wakers and creators of threads are",
    "wakers": "who ends waits",
    "page faults": "what page faults are on",
}
"""Words for what is left out, if they are not the measure's name."""


def worded(comments: Iterable[Comment]) -> list[str]:
    """All comments of a profile."""
    return [word(comment) for comment in comments]


def word(comment: Comment) -> str:
    """A sentence without its end."""
    if isinstance(comment, str):
        return comment
    text = _WORDS[type(comment)](comment)
    return f"{CAREFUL}{text}" if remarks.is_caveat(comment) else text


def why_not_sampled(remark: NotSampled) -> str:
    """``65.0 ms on cores at 99 Hz are only 6 samples``"""
    if isinstance(remark, remarks.KernelHidden):
        return f"mostly in the kernel, which perf_event_paranoid={remark.level} hides; 1 shows it"
    assert isinstance(remark, remarks.TooShort)
    times = f"{duration(remark.on_cpu)} on cores at {remark.frequency} Hz"
    return f"{times} are {'only ' + plural(remark.expected, 'sample') if remark.expected else 'less than one sample'}"


def tells_the_rest(command: str) -> str:
    """``sudo trace-wall tells where the rest goes``"""
    return f"{command} tells where the rest goes"


def _not_sampled(remark: NotSampled) -> str:
    return f"[not sampled]: {why_not_sampled(remark)}"


def _samples_left_out(remark: remarks.SamplesLeftOut) -> str:
    return f"{plural(remark.number, 'sample')} of each process left out: eu-stack took longer than -F allows"


def _waits_hidden(remark: remarks.WaitsHidden) -> str:
    return f"perf shows no waits to this user: {tells_the_rest(remark.command)}"


def _events_lost(remark: remarks.EventsLost) -> str:
    """Text on what losses mean, and what to do."""
    rate = ", a lower -F" if remark.sampled else ""
    help_ = f"trace fewer processes{rate}, or raise --buffer (as root)"
    if not remark.lost:
        return f"perf lost events: {help_}"
    much = share(remark.lost, remark.lost + remark.taken)
    return f"perf lost {much} of the events: numbers of waits are too low, and places rough; {help_}"


def _probes_cost(remark: remarks.ProbesCost) -> str:
    return (
        f"SystemTap's probes took {share(remark.time, remark.of)} of the time of {plural(remark.cores, 'core')}: "
        "what runs, and what waits for a core, is that of programs slowed by the trace"
    )


def _trace_cost(remark: remarks.TraceCost) -> str:
    parts = ", ".join(f"{_PARTS.get(name, name)} {share(part, remark.whole)}" for name, part in remark.parts)
    within = "" if remark.is_within else f", more than {_budget(remark.budget)}"
    of = "the traced processes' time" if remark.of >= remark.length else "the time of one core"
    return f"tracing cost {share(remark.probes, remark.whole)} of {of}{within} ({parts})"


def _budget(millionths: int) -> str:
    return f"the budget of {millionths / 10_000:g} %"


def _shed(remark: remarks.Shed) -> str:
    """``from second 3.2 on: samples every 40.4 ms instead of 10.1``"""
    return f"{shed_since(remark)}: {shed_in_words(remark)}"


def shed_since(remark: remarks.Shed) -> str:
    """Words for when it was left out: ``from second 3.2 on``"""
    if remark.before:
        return f"since {duration(remark.before)} before this interval"
    return f"from second {remark.at / _NSEC:.1f} on"


def shed_in_words(remark: remarks.Shed) -> str:
    """Words for what was left out: ``without locks``"""
    if remark.what == "samples" and remark.frequency:
        before = 1000 / remark.frequency
        return f"samples every {before * remark.times:.0f} ms instead of {before:.0f}"
    if remark.what == "stacks":
        of = f" of threads that wait again within {duration(remark.within)}" if remark.within else ""
        return f"user stacks of one in {remark.times} waits{of}"
    if remark.what == "calls":
        named = [f"{name} ({count(rate)} calls a second)" for name, rate in remark.functions[: thresholds.NAMES_LISTED]]
        others = remark.more + len(remark.functions[thresholds.NAMES_LISTED :])
        more = f" and {plural(others, 'other function')}" if others else ""
        return f"without probes on {', '.join(named)}{more}"
    return f"without {_SHED.get(remark.what, remark.what)}"


def _joined(remark: remarks.Joined) -> str:
    when = f"from second {remark.at / _NSEC:.1f} on"
    return f"{remark.name} (pid {remark.pid}) was traced, too, {when}: others wait for it; --no-peers leaves it out"


def _frames_nameless(remark: remarks.FramesNameless) -> str:
    where = ", ".join(f"{number} in {place}" for place, number in remark.places)
    return f"{NAMELESS}: {where}{f', {remark.elsewhere} elsewhere' if remark.elsewhere else ''}"


def _switches_unseen(remark: remarks.SwitchesUnseen) -> str:
    return f"{plural(remark.number, 'wait')} of which a switch was not seen: timed by the thread's CPU time"


def _kept(remark: remarks.Kept) -> str:
    return f"kept {share(remark.left, remark.whole)} of {remark.value}: {' '.join(remark.steps)}"


def _first_skipped(remark: remarks.FirstSkipped) -> str:
    return f"{remark.name}, {remark.unit} {remark.number}: expected {remark.expected}"


def _recording_left_out(remark: remarks.RecordingLeftOut) -> str:
    told = f"{', '.join(remark.spans)}; --event-filter {remark.event} shows it"
    return f"left out: the recording's own span, {told}"


def _inputs_added_up(remark: remarks.InputsAddedUp) -> str:
    names = ", ".join(remark.names) + (f" and {remark.more} more" if remark.more else "")
    return f"added up: {names} of several inputs; --root {remark.label},process tells them apart"


def _tracks_added_up(remark: remarks.TracksAddedUp) -> str:
    which = "the recording" if remark.inputs == 1 else "the longest recording"
    told = f"; {which} took {duration(remark.length)}" if remark.length else ""
    return f"added up: the times of {plural(remark.tracks, 'track')} (threads, streams of GPUs){told}"


def _of_side(remark: remarks.OfSide) -> str:
    return f"{remark.side}: {word(remark.comment)}"


_WORDS: dict[type[remarks.Remark], Callable[[Any], str]] = {
    remarks.SamplesLeftOut: _samples_left_out,
    remarks.TooShort: _not_sampled,
    remarks.KernelHidden: _not_sampled,
    remarks.WaitsHidden: _waits_hidden,
    remarks.EventsLost: _events_lost,
    remarks.ProbesCost: _probes_cost,
    remarks.TraceCost: _trace_cost,
    remarks.Shed: _shed,
    remarks.Joined: _joined,
    remarks.FramesNameless: _frames_nameless,
    remarks.SwitchesUnseen: _switches_unseen,
    remarks.TablesFull: lambda _: "the kernel side's tables were full: raise --table-size, or trace fewer processes",
    remarks.UnwindTablesFull: lambda _: (
        "the unwind tables did not fit: raise --unwind-memory, or trace fewer processes"
    ),
    remarks.BufferFull: lambda _: "the ring buffer was full: raise --buffer",
    remarks.Kept: _kept,
    remarks.FirstSkipped: _first_skipped,
    remarks.RecordingLeftOut: _recording_left_out,
    remarks.InputsAddedUp: _inputs_added_up,
    remarks.TracksAddedUp: _tracks_added_up,
    remarks.OfSide: _of_side,
}
