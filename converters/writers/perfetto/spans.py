"""Calls and waits as slices on the threads' tracks, waits with their stacks; and Python functions around calls.

Fields are those of TrackEvent, TrackDescriptor and InternedData of google/perfetto. Its page "Writing TrackEvent
Protos Synthetically" (docs/reference/synthetic-track-event.md) describes the use: a slice has a beginning and an end,
both on the track of the thread, and slices nest; stacks and names are interned for the sequence before they are used.
Viewers from version 53 on (CHANGELOG of google/perfetto) show the stack of a selected slice, and a flame graph of those
in a selected area.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...base.text import printable
from ...model.around import drawn_calls
from ...model.call_spans import cut_to_outer
from ...model.scheduling import NO_STACK, OPEN, Array
from ..base.wait_names import state_name, wait_name
from . import wire
from .context import CLEARED, INTERNED, NEEDS_STATE, SPANS, Context, packet, packets
from .interned import Interned

_TRACK_EVENT, _TRACK_DESCRIPTOR = 11, 60
_TYPE, _TRACK, _CATEGORY, _NAME, _STACK, _ANNOTATION = 9, 11, 3, 10, 56, 4
_BEGIN, _END = 1, 2
_UUID, _THREAD, _PID, _TID, _THREAD_NAME = 1, 4, 1, 2, 5
_ANNOTATION_NAME, _ANNOTATION_STRING = 1, 17
_FIRST_TRACK = 1 << 32
"""``uuid`` of the first thread's track; the others follow."""
_WAIT_LEVEL = 255
"""Waits are inside calls."""
_SLICE = np.dtype(
    [
        ("begin", "<i8"),
        ("end", "<i8"),  # OPEN if it is still to come
        ("thread", "<i4"),
        ("level", "<i2"),
        ("category", "<i8"),  # this and the following: interned; 0 for none
        ("name", "<i8"),
        ("stack", "<i8"),
        ("state", "<i8"),
    ]
)


def slices(context: Context) -> Iterator[bytes]:
    """Packets: the interned data, the tracks, then the beginnings and ends by time."""
    interned = Interned()
    calls = _calls(context, interned)
    is_call = calls["level"] >= 0
    spans = np.concatenate([calls[is_call], _waits(context, interned)])
    if not len(spans):
        return
    end = context.scheduling.end
    spans["end"][spans["end"] == OPEN] = end + 1
    cut_to_outer(spans, spans["thread"])
    spans = np.concatenate([calls[~is_call], spans])
    spans["end"][spans["end"] > end] = OPEN
    about = interned.annotation("state")
    for i, piece in enumerate(interned.messages()):
        yield packet(SPANS, wire.text(INTERNED, piece), flags=0 if i else CLEARED | NEEDS_STATE)
    yield from _tracks(context, np.unique(spans["thread"]))
    # At the same time the ends come first, then spans without a length, then beginnings, outer ones first.
    ended = np.flatnonzero(spans["end"] != OPEN)
    empty = spans["begin"] == spans["end"]
    times = np.concatenate([spans["begin"], spans["end"][ended]])
    ranks = np.concatenate([np.where(empty, 1, 3), np.where(empty[ended], 2, 0)])
    which = np.concatenate([np.arange(len(spans)), ended])
    order = np.lexsort((spans["level"][which], ranks, times))
    for part in wire.parts(len(order)):
        places = order[part]
        of, begins = spans[which[places]], places < len(spans)
        fixed = wire.constant(wire.number(_ANNOTATION_NAME, about), len(of))
        state = wire.messages(_ANNOTATION, [fixed, wire.numbers(_ANNOTATION_STRING, of["state"])])
        more = [
            wire.numbers(_CATEGORY, of["category"]),
            wire.numbers(_NAME, of["name"]),
            wire.where(of["stack"] > 0, wire.numbers(_STACK, of["stack"])),
            wire.where(of["state"] > 0, state),
        ]
        event = [
            wire.numbers(_TYPE, np.where(begins, _BEGIN, _END)),
            wire.numbers(_TRACK, _FIRST_TRACK + of["thread"].astype(np.int64)),
            wire.where(begins, wire.joined(more)),
        ]
        yield packets(SPANS, context.time(times[places]), [wire.messages(_TRACK_EVENT, event)], NEEDS_STATE)


def _calls(context: Context, interned: Interned) -> Array:
    calls, names = drawn_calls(context.scheduling, context.known)
    made = np.zeros(len(calls), _SLICE)
    for name in ("begin", "end", "level", "thread"):
        made[name] = calls[name]
    made["end"][made["end"] > context.scheduling.end] = OPEN
    if len(made):
        numbers, which = np.unique(calls["name"], return_inverse=True)
        drawn = [names[number] for number in numbers.tolist()]
        made["name"] = np.array([interned.event(printable(each.name)) for each in drawn])[which]
        made["category"] = np.array([interned.category(each.category) for each in drawn])[which]
    return made


def _waits(context: Context, interned: Interned) -> Array:
    spans, threads = _usable(context)
    made = np.zeros(len(spans), _SLICE)
    if len(spans):
        made["begin"], made["end"], made["thread"], made["level"] = spans["begin"], spans["end"], threads, _WAIT_LEVEL
        made["category"] = interned.category("blocked")
        made["name"] = _named(context, spans, interned)
        made["stack"], made["state"] = _stacks(context, spans, interned), _states(spans, interned)
    return made


def _usable(context: Context) -> tuple[Array, Array]:
    """Waits within the time of the trace, and the row of each one's thread; none overlaps the next."""
    scheduling = context.scheduling
    spans = scheduling.blocked.copy()
    spans["begin"] = np.maximum(spans["begin"], scheduling.begin)
    # A woken thread waits for a core, which the viewer shows from the switches.
    spans["end"] = np.where(spans["woken"] > 0, np.maximum(spans["woken"], spans["begin"]), spans["end"])
    threads = context.known.rows(spans["tid"], spans["begin"])
    spans, threads = spans[threads >= 0], threads[threads >= 0]
    order = np.argsort(threads, kind="stable")
    spans, threads = spans[order], threads[order]
    following = np.roll(spans["begin"], -1)
    same = np.append(threads[1:] == threads[:-1], False)[: len(spans)].astype(bool)
    over = same & ((spans["end"] == OPEN) | (spans["end"] > following))
    spans["end"] = np.where(over, following, spans["end"])
    return spans, threads


def _named(context: Context, spans: Array, interned: Interned) -> Array:
    """The interned name of each span."""
    table, states = np.unique(spans["state"], return_inverse=True)
    keys = spans["stack"].astype(np.int64) * len(table) + states
    distinct, which = np.unique(keys, return_inverse=True)
    names = []
    for key in distinct:
        stack, state = divmod(int(key), len(table))
        names.append(interned.event(wait_name(context.scheduling, stack, state_name(int(table[state])))))
    return np.array(names)[which]


def _states(spans: Array, interned: Interned) -> Array:
    """The interned state of each span."""
    table, states = np.unique(spans["state"], return_inverse=True)
    return np.array([interned.value(state_name(int(bits))) for bits in table])[states]


def _stacks(context: Context, spans: Array, interned: Interned) -> Array:
    """The interned stack of each span, 0: none."""
    table, which = np.unique(spans["stack"], return_inverse=True)
    return np.array([interned.stack(context.scheduling.stacks[i]) if i != NO_STACK else 0 for i in table])[which]


def _tracks(context: Context, rows: Array) -> Iterator[bytes]:
    """A track for each thread; if its id was used before, the track begins when the thread does."""
    threads = context.scheduling.threads
    rows = rows[np.argsort(threads["begin"][rows], kind="stable")]
    for part in wire.parts(len(rows)):
        these = threads[rows[part]]
        thread = [
            wire.numbers(_PID, these["tgid"]),
            wire.numbers(_TID, these["tid"]),
            wire.texts(_THREAD_NAME, context.names, these["name"]),
        ]
        uuid = wire.numbers(_UUID, _FIRST_TRACK + rows[part].astype(np.int64))
        track = wire.messages(_TRACK_DESCRIPTOR, [uuid, wire.messages(_THREAD, thread)])
        # Only from then on does the viewer have a new thread with that id.
        times = np.maximum(these["begin"] + 1, context.scheduling.begin)
        yield packets(SPANS, context.time(times), [track])
