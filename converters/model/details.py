"""Data of a pprof file that no other format uses: kept to be written to the next pprof file."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Mapping_
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .samples import Frame, Module, ValueType


class Function(NamedTuple):
    """Additional data of a frame and its function in pprof (google/pprof, proto/profile.proto)."""

    system_name: str
    """The name in the symbol table, mangled."""
    start_line: int = 0
    line: int = 0
    """Line of the call; the frame's own line is ``start_line`` if this is 0."""
    column: int = 0
    name: str = ""
    """The name in the file, if the frame has a more readable one."""


class Mapping(NamedTuple):
    """Addresses to which a file was mapped: only for the next pprof file, since frames' addresses are relative to their
    file."""

    start: int
    limit: int
    offset: int
    has_functions: bool = False
    has_filenames: bool = False
    has_line_numbers: bool = False
    has_inline_frames: bool = False


@dataclass(slots=True)
class Details:
    """A transform that changes a frame loses that frame's details, and nothing else."""

    period_type: ValueType | None = None
    """Unit of ``period``; its ``aggregate`` is not used."""
    period: int = 0
    """Distance between two samples."""
    drop_frames: str = ""
    keep_frames: str = ""
    doc_url: str = ""
    functions: dict[Frame, Function] = field(default_factory=dict)
    nameless: set[Frame] = field(default_factory=set)
    """Frames that consist only of an address: their names show it, and were made by us."""
    groups: dict[Frame, list[tuple[Frame, ...]]] = field(default_factory=dict)
    """Key: innermost frame; value: frames of one address, innermost first, all but the last inlined. Longest first."""
    mappings: dict[Module, Mapping] = field(default_factory=dict)
    """Addresses to which files were mapped, in the order of the pprof file: the first is the program."""
    units: dict[str, str] = field(default_factory=dict)
    """Units of numeric labels, by key."""


def renamed(details: Details, changed: Mapping_[Frame, Frame]) -> Details:
    """``details`` for frames that have changed; ``changed`` maps old frames to new ones. Files keep their old names."""
    functions = {changed.get(frame, frame): found for frame, found in details.functions.items()}
    for old, new in changed.items():
        known = functions.get(new) or Function(old.name, 0, old.line)
        functions[new] = known._replace(name=old.name)
    groups: dict[Frame, list[tuple[Frame, ...]]] = {}
    for several in details.groups.values():
        for group in several:
            frames = tuple(changed.get(frame, frame) for frame in group)
            groups.setdefault(frames[0], []).append(frames)
    return replace(details, functions=functions, groups=groups)


def merged(all_details: Iterable[Details | None]) -> Details | None:
    """The details of several profiles as one, None when there are none. The first of contradicting ones is used."""
    known = [details for details in all_details if details is not None]
    if not known:
        return None
    first = known[0]
    groups: dict[Frame, list[tuple[Frame, ...]]] = {}
    for details in known:
        for innermost, several in details.groups.items():
            joined = {*groups.get(innermost, ()), *several}
            groups[innermost] = sorted(joined, key=lambda group: (-len(group), group))
    return Details(
        first.period_type,
        max(details.period for details in known if details.period_type == first.period_type),
        drop_frames=next((details.drop_frames for details in known if details.drop_frames), ""),
        keep_frames=next((details.keep_frames for details in known if details.keep_frames), ""),
        doc_url=next((details.doc_url for details in known if details.doc_url), ""),
        functions={frame: found for details in reversed(known) for frame, found in details.functions.items()},
        nameless={frame for details in known for frame in details.nameless},
        groups=groups,
        mappings={module: found for details in reversed(known) for module, found in details.mappings.items()},
        units={key: unit for details in reversed(known) for key, unit in details.units.items()},
    )
