"""Decodes profile.proto from any source to a `Profile`."""

from __future__ import annotations

import gzip
import io
import os.path
import zlib
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, BinaryIO, get_args

from ..base.errors import StallscopeError
from ..model import Frame, Kind, Labels, Module, Profile, Sample, Stack, ValueType
from ..model.details import Details, Function, Mapping
from ..model.kinds import kind_of_module
from . import metadata
from .encoder import default_function
from .metadata import Column
from .schema import messages
from .strings import unescape

DEFAULT_LIMIT = 128 << 20
"""Maximum size that `load` decompresses, in bytes: about a million samples."""

_USUAL_PART = 32
"""Minimum size of a sample, name, location, … in a usual profile, in bytes: this bounds their number."""
_MAX_PART = 4 << 20
"""Maximum size of one sample, location, … in bytes, which is parsed at once."""
_KINDS: dict[str, Kind] = {f" [{kind}]": kind for kind in get_args(Kind)}
_U64 = (1 << 64) - 1
_REMEDY = "record it again, or copy it again from where it came from"


def load(file: BinaryIO, *, limit: int = DEFAULT_LIMIT) -> Profile:
    """Reads a pprof file from any source, compressed or not.

    Data missing from another program's file has the model's default; a location without a function is
    named after its file and address. Addresses become ELF virtual addresses as far as the mapping allows
    (file offsets, which are equal in most files). Raises StallscopeError, and nothing else, for a file that
    cannot be read, is damaged, decompresses to more than ``limit`` bytes, or has more
    than one part per 32 bytes of that. Memory: about 10 × limit for a usual
    profile, 50 × for a hostile one.
    """
    data = _unpack(file, limit)
    from google.protobuf.message import DecodeError

    try:
        return _Decoder(data, limit).profile()
    except (DecodeError, ValueError) as error:
        raise StallscopeError(f"this is not a pprof profile, or a damaged one: {error}", _REMEDY) from error


def _unpack(file: BinaryIO, limit: int) -> bytes:
    try:
        data = file.read(limit + 1)
        if data[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                parts, size = [], 0
                while size <= limit and (part := packed.read(1 << 20)):
                    parts.append(part)
                    size += len(part)
            data = b"".join(parts)
    except (OSError, EOFError, zlib.error) as error:
        raise StallscopeError(f"the profile cannot be read: {error}", _REMEDY) from error
    if len(data) > limit:
        raise StallscopeError(f"the profile unpacks to more than {limit >> 20} MiB", "record for a shorter time")
    return data


class _Decoder:
    """Decodes one profile. ValueError and DecodeError mean a damaged file."""

    def __init__(self, data: bytes, limit: int, *, is_inner: bool = False) -> None:
        """``is_inner``: of a profile inside another one."""
        self._pb = messages()
        self._limit, self._is_inner = limit, is_inner
        self._outer = self._pb.Profile.FromString(data)
        self._check_counts(limit // _USUAL_PART)
        if not self._outer.string_table:
            raise ValueError("it has no string table")
        self._strings: list[str] = [text.decode(errors="surrogateescape") for text in self._outer.string_table]
        self._comments = [self._string(i) for i in self._outer.comment]
        self._metadata: str | None = self._outer.stallscope.decode(errors="surrogateescape")
        in_comments = not self._metadata
        if in_comments:
            self._metadata = metadata.in_comments(self._comments)
        self._foreign = self._metadata is None
        """Whether another program wrote the file, or we wrote it from one by another program."""
        if self._metadata is not None:
            self._strings = [unescape(text) for text in self._strings]
            self._comments = [self._string(i) for i in self._outer.comment]
            self._metadata = metadata.in_comments(self._comments) if in_comments else unescape(self._metadata)
        self._details = Details()
        self._mappings = dict(self._parts("mapping", self._pb.Mapping))
        self._functions = dict(self._parts("function", self._pb.Function))
        self._locations: dict[int, Stack] = {}
        self._stacks: dict[bytes, Stack] = {}
        self._labels: dict[tuple[tuple[int, int, int, int], ...], Labels] = {}
        self._frames_left = limit // 4  # a small location can stand for many frames, and a stack can repeat it

    def _check_counts(self, most: int) -> None:
        """Limits the number of parts: an empty one takes 2 bytes in the file, and a hundred times as much here."""
        outer = self._outer
        for parts in (outer.sample, outer.string_table, outer.location, outer.function, outer.mapping, outer.comment):
            if len(parts) > most:
                raise ValueError(f"it has more than {most} samples, names or places")

    def profile(self) -> Profile:
        """The whole profile."""
        outer = self._outer
        profile = Profile([], start_ns=outer.time_nanos, duration_ns=outer.duration_nanos, comments=[*self._comments])
        sums = [self._value_type(data) for data in outer.sample_type]
        if self._metadata is not None:
            columns, self._foreign = metadata.decode(self._metadata, profile)
            if not self._is_inner:
                profile.critical = profile.scheduling = None
        else:
            columns = [Column(value_type, "") for value_type in sums]
            profile.value_types = sums
        if sums != [column.value_type for column in columns if not column.label]:
            raise ValueError("its value types contradict each other")
        profile.default_value = self._default([value_type.name for value_type in sums])
        modules = {i: self._module(message) for i, message in self._mappings.items()}
        for i, message in self._parts("location", self._pb.Location):
            self._locations[i] = self._frames(message, modules)
        profile.samples = list(self._samples(columns))
        if self._foreign:
            self._read_details()
            profile.details = self._details
        if outer.answered and not self._foreign and not self._is_inner:
            profile.answered = _Decoder(outer.answered, self._limit, is_inner=True).profile()
        return profile

    def _default(self, names: list[str]) -> str:
        """The value that pprof shows: the stated type, or the last (internal/driver/driver.go, sampleFormat)."""
        named = self._string(self._outer.default_sample_type)
        chosen = named if named in names else names[-1] if names and self._metadata is None else ""
        return "" if chosen == (names[0] if names else "") else chosen

    def _value_type(self, data: bytes) -> ValueType:
        message = self._pb.ValueType.FromString(_bounded(data))
        return ValueType(self._string(message.type), self._string(message.unit))

    def _read_details(self) -> None:
        """Reads the data about the file as a whole that has no place in the model."""
        outer, details = self._outer, self._details
        if outer.period_type:
            details.period_type = self._value_type(outer.period_type)
        details.period = outer.period
        details.drop_frames, details.keep_frames = self._string(outer.drop_frames), self._string(outer.keep_frames)
        details.doc_url = self._string(outer.doc_url)
        for several in details.groups.values():
            several.sort(key=len, reverse=True)

    def _parts(self, name: str, message_class: Any) -> Iterator[tuple[int, Any]]:
        for data in getattr(self._outer, name):
            message = message_class.FromString(_bounded(data))
            if not message.id:
                raise ValueError(f"a {name} without an id")
            yield message.id, message

    def _module(self, mapping: Any) -> Module:
        path, build_id = self._string(mapping.filename), self._string(mapping.build_id).lower()
        start, limit, offset = mapping.memory_start, mapping.memory_limit, mapping.file_offset
        if limit <= start:
            module = Module(path, build_id)
        else:
            module = Module(path, build_id, limit if _is_kernel(path) else (limit - start + offset) & _U64)
        self._details.mappings.setdefault(
            module,
            Mapping(
                start, limit, offset, mapping.has_functions, mapping.has_filenames, mapping.has_line_numbers,
                mapping.has_inline_frames,
            ),
        )  # fmt: skip
        return module

    def _frames(self, location: Any, modules: dict[int, Module]) -> Stack:
        """The frames of one location, innermost first: several if functions were inlined."""
        module, address = None, location.address
        if location.mapping_id:
            module = _entry(modules, location.mapping_id, "mapping")
            mapping = self._mappings[location.mapping_id]
            if not _in_kernel(module):
                address = (address - mapping.memory_start + mapping.file_offset) & _U64
        if not location.line:
            kind: Kind = "kernel" if _in_kernel(module) else "native"
            frame = Frame(_unresolved(module, address), kind, module, address)
            self._details.nameless.add(frame)
            return (frame,)
        frames = tuple(self._frame(line, module, address) for line in location.line)
        if len(frames) > 1 and self._foreign:
            self._details.groups.setdefault(frames[0], []).append(frames)
        return frames

    def _frame(self, line: Any, module: Module | None, address: int) -> Frame:
        if not line.function_id:
            return Frame(_unresolved(module, address), "native", module, address, "", line.line)
        function = _entry(self._functions, line.function_id, "function")
        name, system_name = self._string(function.name), self._string(function.system_name)
        file = self._string(function.filename)
        kind = self._kind(name, system_name, file, module)
        name = name or system_name or _unresolved(module, address)
        frame = Frame(name, kind, module, address, file, line.line or function.start_line)
        if self._foreign:
            found = Function(system_name, function.start_line, line.line, line.column)
            if found != default_function(frame):
                self._details.functions.setdefault(frame, found)
        return frame

    def _kind(self, name: str, system_name: str, file: str, module: Module | None) -> Kind:
        if self._metadata is not None and (kind := _KINDS.get(system_name[len(name) :])):
            return kind
        if not self._foreign:
            return "native"
        if file.endswith(".py"):
            return "python"
        return kind_of_module(module.path) if module else "native"

    def _samples(self, columns: list[Column]) -> Iterator[Sample]:
        sums = [i for i, column in enumerate(columns) if not column.label]
        others = {column.label: i for i, column in enumerate(columns) if column.label}
        for data in self._outer.sample:
            message = self._pb.Sample.FromString(_bounded(data))
            if len(message.value) != len(sums):
                raise ValueError("a sample has another number of values than the profile")
            values = [0] * len(columns)
            for i, value in zip(sums, message.value, strict=True):
                values[i] = value
            labels = []
            for label in message.label:
                i = others.get(self._string(label.key), -1) if others else -1
                if i >= 0:
                    values[i] = label.num
                else:
                    labels.append((label.key, label.str, label.num, label.num_unit))
            yield Sample(self._stack(message.location_id), tuple(values), self._label_tuple(tuple(labels)))

    def _stack(self, location_ids: Any) -> Stack:
        ids = array("Q", location_ids)
        key = ids.tobytes()
        if (stack := self._stacks.get(key)) is None:
            frames: list[Frame] = []
            for i in ids:
                inlined = _entry(self._locations, i, "location")
                self._frames_left -= len(inlined)
                if self._frames_left < 0:
                    raise ValueError("its stacks are too large")
                frames.extend(inlined)
            stack = self._stacks[key] = tuple(reversed(frames))
        return stack

    def _label_tuple(self, raw: tuple[tuple[int, int, int, int], ...]) -> Labels:
        if (labels := self._labels.get(raw)) is None:
            pairs: list[tuple[str, str | int]] = []
            for key, text, number, unit in raw:
                is_number = not text and (number or unit)
                pairs.append((self._string(key), number if is_number else self._string(text)))
                if is_number:
                    self._details.units.setdefault(self._string(key), self._string(unit))
            labels = self._labels[raw] = tuple(sorted(pairs, key=lambda pair: pair[0]))
        return labels

    def _string(self, i: int) -> str:
        if not 0 <= i < len(self._strings):
            raise ValueError("a string is missing")
        return self._strings[i]


def _bounded(data: bytes) -> bytes:
    if len(data) > _MAX_PART:
        raise ValueError(f"one of its parts is larger than {_MAX_PART >> 20} MiB")
    return data


def _entry(table: dict[int, Any], i: int, what: str) -> Any:
    try:
        return table[i]
    except KeyError:
        raise ValueError(f"a {what} is missing") from None


def _in_kernel(module: Module | None) -> bool:
    return module is not None and _is_kernel(module.path)


@lru_cache(maxsize=1024)
def _is_kernel(path: str) -> bool:
    return kind_of_module(path) == "kernel"


def _unresolved(module: Module | None, address: int) -> str:
    name = os.path.basename(module.path).strip("[]")[-255:] if module else ""  # bounded: one per location
    return f"[{name}+{address:#x}]" if name else f"[{address:#x}]"
