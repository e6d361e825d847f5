"""Folded stacks of bcc's tools with delimiters (offcputime, profile, stackcount with -f -d; offwaketime with -f), which
separate the kinds of frames: ``comm;user;…;user;-;kernel;…;kernel VALUE``.

The first field is the process's name; the kernel's frames follow ``-``. The waker follows ``--`` (offwaketime), with
its frames innermost first and its name last (tools/offwaketime.py of bcc): they are kept in this order above a frame
``--``; the waker's kernel frames precede its ``-``. ``[Missed User Stack]`` and ``[Missed Kernel Stack]`` stay as
frames, and are counted. Text without delimiters is read like any other folded text: for weights and bad lines see
`folded`. `bcc_stacks` reads the tools' output without -f.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Frame, Kind, Labels, Profile, Sample, Stack, ValueType
from ..base.options import ReadOptions
from ..base.source import Source
from ..folded.reader import FoldedLines, is_text
from . import stacks as bcc_stacks

EXPECTED = "a folded stack of bcc: comm;user;-;kernel VALUE"

_KERNEL, _WAKER = b"-", b"--"
_DELIMITERS = (b";-;", b";--;")
_MISSED, _MISSED_USER = b"[Missed ", b"[Missed User Stack]"
_CACHE = 1 << 15


def sniff(head: bytes) -> bool:
    """Whether there are folded lines, one of them with a delimiter, or unfolded stacks."""
    return is_text(head) and (
        any(
            any(delimiter in b"%b;" % stack for delimiter in _DELIMITERS) and weight.isdigit()
            for stack, _, weight in (line.rpartition(b" ") for line in head.splitlines())
        )
        or bcc_stacks.sniff(head)
    )


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack. Raises StallscopeError when there are lines, but no stack."""
    if bcc_stacks.sniff(source.head):
        return bcc_stacks.read(source, options)
    lines = FoldedLines(source.name, EXPECTED)
    for chunk in source.chunks():
        lines.add(chunk)
    weights = lines.weights()
    lines.skipped.check(source, bool(weights), EXPECTED)
    profile = Profile([ValueType("samples", "count")], title="folded stacks of bcc")
    stacks = _Stacks()
    profile.samples = list(stacks.samples(weights))
    if stacks.missed:
        lines.skipped.add("stacks missed", count=stacks.missed)
    lines.skipped.tell(profile)
    return profile


class _Stacks:
    """Frames by kind."""

    def __init__(self) -> None:
        self.missed = 0
        self._frames: dict[tuple[bytes, Kind], Frame] = {}
        self._labels: dict[bytes, Labels] = {}
        self._callers: dict[bytes, tuple[list[Frame], Kind]] = {}

    def samples(self, weights: dict[bytes, int]) -> Iterator[Sample]:
        """Removes the stacks from ``weights`` one by one, so that they are not in memory twice."""
        for text in list(weights):
            weight = weights.pop(text)
            process, _, rest = text.partition(b";")
            self.missed += text.count(b";" + _MISSED)
            yield Sample(self._stack(rest), (weight,), self._process(process))

    def _stack(self, text: bytes) -> Stack:
        own, found, waker = text.partition(b";--;")
        if not found and text.startswith(b"--;"):
            own, found, waker = b"", b"--", text[3:]
        frames = self._own(own)
        if found:
            frames += self._waker(waker.split(b";"))
        return tuple(frames)

    def _own(self, text: bytes) -> list[Frame]:
        """Callers seen before are not looked up again."""
        caller, separator, leaf = text.rpartition(b";")
        if not separator:
            return self._tell(text.split(b";"), "native") if text and text != _KERNEL else []
        known = self._callers.get(caller)
        if known is None:
            if len(self._callers) >= _CACHE:
                self._callers.clear()
            fields = caller.split(b";")
            missed = fields[0].startswith(_MISSED_USER)  # the user part then consists of this field only
            at = 1 if missed else fields.index(_KERNEL) if _KERNEL in fields else len(fields)
            inner = [field for field in fields[at:] if field != _KERNEL]
            above = self._tell(fields[:at], "native") + self._tell(inner, "kernel")
            known = self._callers[caller] = above, "kernel" if missed or at < len(fields) else "native"
        frames, kind = known
        return frames + self._tell([leaf], kind) if leaf != _KERNEL else list(frames)

    def _waker(self, fields: list[bytes]) -> list[Frame]:
        """The kernel's frames precede the delimiter; the last field is the waker's name."""
        at = fields.index(_KERNEL) if _KERNEL in fields else 0
        frames = self._tell([_WAKER], "other") + self._tell(fields[:at], "kernel")
        return frames + self._tell(fields[at + (at > 0) : -1], "native") + self._tell(fields[-1:], "other")

    def _tell(self, fields: list[bytes], kind: Kind) -> list[Frame]:
        return [self._frames.get((field, kind)) or self._make(field, kind) for field in fields]

    def _make(self, field: bytes, kind: Kind) -> Frame:
        name = field
        if field.endswith(b"_[k]") and len(field) > 4:  # profile -a
            name = field[:-4]
        told: Kind = "kernel" if name != field or field == b"[Missed Kernel Stack]" else kind
        frame = Frame(name.decode(errors="surrogateescape") or "[unknown]", told)
        self._frames[field, kind] = frame
        return frame

    def _process(self, field: bytes) -> Labels:
        labels = self._labels.get(field)
        if labels is None:
            labels = (("process", field.decode(errors="surrogateescape")),) if field else ()
            self._labels[field] = labels
        return labels
