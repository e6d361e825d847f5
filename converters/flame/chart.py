"""Lays the spans of a timeline out as a flame chart: the x axis is time, and equal calls are not merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.errors import StallscopeError
from ..model import Frame, Profile, ValueType
from ..model.states import BLOCKED, ENDED, INTERRUPTIBLE, OTHER, RUNNABLE_STATES, RUNNING, UNKNOWN
from ..model.timeline import CORES, Timeline, Track
from ..transforms.labels import root_name
from ..writers.base.options import WriteOptions, value_index
from .tree import Key, Node, Tree, whole_of

_IDS = ("pid", "tid")
_OTHER_STATES = frozenset({RUNNING, *RUNNABLE_STATES, *BLOCKED, ENDED, UNKNOWN})
"""Names that say the state themselves. Others say where a thread waits."""
_HOW = (
    "read a Chrome trace, an evented speedscope file, or one file of folded lines in their order; "
    "of what changes samples, only --keep and --drop by label leave the times"
)


def build(
    profile: Profile, options: WriteOptions, *, minimum: float = 0.0, label: str = "", whole: float = 0.0
) -> Tree:
    """One root per track, as long as the whole timeline, and over it the calls at their times.

    ``Node.start`` is relative to the timeline's beginning; ``Node.own`` is the time of a call outside of its callees.
    Calls shorter than ``minimum`` (a share of the whole, 0 to 1) are left out together with their callees, and counted
    in ``Tree.hidden``. ``label`` names the tracks' label to use as ``Node.label``. ``whole`` is the end of the axis, if
    later than the last call.
    Raises StallscopeError (exit code 2) when the profile has no timeline, or none for the requested value.
    """
    value_type = profile.value_types[value_index(profile, options)]
    timeline = _timeline(profile, options, value_type)
    tree = Tree(value_type, "", [], 0, 0, timed=True)
    tracks = [track for track in timeline.tracks if track.spans]
    end = max((span.end for track in tracks for span in track.spans), default=0)
    if not end:
        return tree
    tree.measured = end
    end = whole_of(whole, end)
    limit = max(minimum * end, 1)
    keys: dict[Frame, Key] = {}
    for track in tracks:
        mark = str(dict(track.labels).get(label, "")) if label else ""
        root = Node(0, Key(_name(track, options.roots), "root", ""), 0, end, 0, 0, label=mark)
        states = _states(track) if label == "state" else {}
        nodes, hidden = _calls(track, limit, keys, mark, states)
        tree.nodes.append(root)
        tree.nodes += nodes
        tree.hidden += hidden
        tree.bands.append(1 + max((node.depth for node in nodes), default=0))
    tree.levels = sum(tree.bands)
    return tree


def _timeline(profile: Profile, options: WriteOptions, value_type: ValueType) -> Timeline:
    if options.reverse:
        raise StallscopeError(
            "--reverse turns stacks over, and --flamechart shows when calls were", "use one of them", exit_code=2
        )
    timeline = profile.timeline
    if timeline is None:
        raise StallscopeError(
            "a flame chart needs to know when calls were, and the profile does not", _HOW, exit_code=2
        )
    if timeline.unit != value_type.unit:
        cause = f"the timeline is in {timeline.unit}, {value_type.name!r} in {value_type.unit}"
        raise StallscopeError(cause, "leave out --value for a flame chart", exit_code=2)
    return timeline


def shows_states(timeline: Timeline | None) -> bool:
    """Whether some tracks show what the scheduler did with a thread, as in a trace made by trace-wall."""
    return timeline is not None and any(map(_states, timeline.tracks))


def _states(track: Track) -> dict[str, str]:
    """The state for each name of the track's outermost calls; empty if they are no states of a thread."""
    outermost: dict[str, None] = {}
    end = -1
    for span in track.spans:
        if span.start >= end:
            outermost[span.frame.name] = None
            end = span.end
    if _pid(track) == CORES:
        return {name: OTHER if name.startswith("[") else RUNNING for name in outermost}
    if RUNNING not in outermost:
        return {}
    return {name: name if name in _OTHER_STATES else INTERRUPTIBLE for name in outermost}


def _pid(track: Track) -> object:
    return dict(track.labels).get("pid")


def _name(track: Track, roots: Sequence[str] | None) -> str:
    """Name of the track's root: ``trainer-4711 · worker-4712``."""
    if track.name and roots is None:
        return track.name
    labels = tuple(pair for pair in track.labels if not (pair[0] in _IDS and _is_made_up(pair[1])))
    if roots is None and _pid(track) == CORES:
        return root_name(labels, "thread") or "cores"
    names = [root_name(labels, label) for label in (("process", "thread") if roots is None else roots)]
    # A main thread mostly has the name of its process, and always its id.
    return " · ".join(filter(None, dict.fromkeys(names))) or track.name or "all"


def _is_made_up(number: object) -> bool:
    return isinstance(number, int) and number >= CORES


def _calls(
    track: Track, limit: float, keys: dict[Frame, Key], mark: str, states: Mapping[str, str]
) -> tuple[list[Node], int]:
    """The nodes for calls that are long enough, and the number of calls below shown callers that are not. ``states``:
    labels by the name of the outermost call, else ``mark``."""
    default = mark
    nodes: list[Node] = []
    own: list[int] = []
    open_: list[tuple[int, int]] = []
    hidden, hidden_end = 0, -1
    for span in track.spans:
        while open_ and open_[-1][0] <= span.start:
            open_.pop()
        if span.start < hidden_end:
            continue
        length = span.end - span.start
        if open_:
            own[open_[-1][1]] -= length
        if length < limit:
            hidden, hidden_end = hidden + 1, span.end
            continue
        frame = span.frame
        key = keys.get(frame)
        if key is None:
            key = keys[frame] = Key(frame.name, frame.kind, frame.module.path if frame.module else "")
        if states and not open_:
            mark = states.get(frame.name, default)
        open_.append((span.end, len(nodes)))
        own.append(length)
        nodes.append(Node(len(open_), key, span.start, length, 0, 1, label=mark))
    return [node._replace(own=rest) for node, rest in zip(nodes, own, strict=True)], hidden
