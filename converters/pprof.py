"""Profiles as pprof (gzip'd profile.proto), the form in which they are saved.

How the model maps to pprof, so that other viewers show what they can and `load` gives back everything:

- a stack is written leaf first; a distinct `Frame` is a Location with one Line; a `Module` is a Mapping
  from 0 to ``size``, because addresses are ELF virtual addresses already;
- ``Frame.kind`` stands in Function.system_name: ``schedule [kernel]`` beside the name ``schedule``. Native
  functions have the name alone there, so that viewers may shorten C++ names as they like;
- value types that are sums are sample values; a minimum or maximum would be added up by every viewer, so it
  is a numeric label with its unit;
- labels are string or numeric labels; a number's unit is its key ("pid"), because viewers drop a 0 without one;
- everything else is in the comments, see `pprof_comments`;
- strings are valid UTF-8: a lone surrogate (a byte of a name that was not UTF-8, see os.fsdecode) is written
  as the text ``\\udc80``, and a backslash that would be mistaken for such an escape as ``\\u005c``.
"""

from __future__ import annotations

import gzip
import io
import os.path
import re
import zlib
from array import array
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO, cast, get_args

from . import pprof_comments
from .errors import StallscopeError
from .model import Frame, Kind, Labels, Module, Profile, Sample, Stack, ValueType
from .pprof_comments import Column
from .pprof_schema import messages

DEFAULT_LIMIT = 128 << 20
"""Bytes that `load` unpacks at most: about a million samples."""

_CHUNK = 1000
_USUAL_PART = 32
"""Bytes of a sample, name, location, … in a usual profile, at least: this bounds how many there may be."""
_MAX_PART = 4 << 20
"""Bytes of one sample, location, … at most: what is parsed at once."""
_KINDS: dict[str, Kind] = {f" [{kind}]": kind for kind in get_args(Kind)}
_SURROGATE = re.compile("[\ud800-\udfff]")
_AMBIGUOUS = re.compile(r"\\(?=u(?:d[89a-f][0-9a-f]{2}|005c))")
_ESCAPE = re.compile(r"\\u(d[89a-f][0-9a-f]{2}|005c)")
_U64 = (1 << 64) - 1


def save(profile: Profile, file: BinaryIO) -> None:
    """Writes ``profile``; the same profile always gives the same bytes.

    Raises StallscopeError when a number does not fit into 64 bits, OSError as ``file`` does.
    """
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
        try:
            for chunk in _Encoder(profile).chunks():
                packed.write(chunk)
        except ValueError as error:
            raise StallscopeError(f"the profile cannot be saved as pprof: {error}") from error


def load(file: BinaryIO, *, limit: int = DEFAULT_LIMIT) -> Profile:
    """Reads a pprof file of any origin, packed or not.

    What another program's file does not say has the model's default; a location without a function is
    named after its file and address. Addresses become ELF virtual addresses as far as the mapping tells
    (file offsets, which they equal in most files). Raises StallscopeError, and nothing else, for a file that
    cannot be read, is damaged, unpacks to more than ``limit`` bytes, or has more
    than a part per 32 bytes of that. Memory: about 10 × limit for a usual
    profile, 50 × for a hostile one.
    """
    data = _unpack(file, limit)
    from google.protobuf.message import DecodeError

    try:
        return _Decoder(data, limit).profile()
    except (DecodeError, ValueError) as error:
        raise StallscopeError(f"this is not a pprof profile, or a damaged one: {error}", _REMEDY) from error


_REMEDY = "record it again, or copy it again from where it came from"


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


def _escape(text: str) -> str:
    if "\\u" in text:
        text = _AMBIGUOUS.sub(r"\\u005c", text)
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "\\u" in text else text


def _columns(profile: Profile) -> list[Column]:
    """Gives each minimum and maximum a label key that no sample uses."""
    taken = {key for labels in {sample.labels for sample in profile.samples} for key, _ in labels}
    columns = []
    for value_type in profile.value_types:
        label = ""
        if value_type.aggregate != "sum":
            label = value_type.name or value_type.aggregate
            while label in taken:
                label += "_"
            taken.add(label)
        columns.append(Column(value_type, label))
    return columns


class _Encoder:
    """One profile on its way out. The tables grow as samples are written, so they come last in the file."""

    def __init__(self, profile: Profile) -> None:
        self._pb = messages()
        self._profile = profile
        self._columns = _columns(profile)
        self._strings: dict[str, int] = {"": 0}
        self._locations: dict[Frame, int] = {}
        self._modules: dict[Module, int] = {}
        self._functions: dict[tuple[str, Kind, str], int] = {}
        self._labels: dict[Labels, bytes] = {}

    def chunks(self) -> Iterator[bytes]:
        """Pieces of one serialized Profile: protobuf joins the repeated fields of pieces that follow each other."""
        yield self._head()
        samples = iter(self._profile.samples)
        while chunk := [self._sample(sample) for sample in islice(samples, _CHUNK)]:
            yield self._pb.Profile(sample=chunk).SerializeToString()
        yield self._tables()

    def _head(self) -> bytes:
        sums = [column.value_type for column in self._columns if not column.label]
        head = self._pb.Profile(time_nanos=self._profile.start_ns, duration_nanos=self._profile.duration_ns)
        for value_type in sums:
            message = self._pb.ValueType(type=self._string(value_type.name), unit=self._string(value_type.unit))
            head.sample_type.append(message.SerializeToString())
        if sums:
            head.default_sample_type = self._string(sums[0].name)
        return cast(bytes, head.SerializeToString())

    def _sample(self, sample: Sample) -> bytes:
        message = self._pb.Sample(location_id=[self._location(frame) for frame in reversed(sample.stack)])
        for column, value in zip(self._columns, sample.values, strict=True):
            if not column.label:
                message.value.append(value)
            else:
                unit = column.value_type.unit or column.label
                message.label.add(key=self._string(column.label), num=value, num_unit=self._string(unit))
        if (labels := self._labels.get(sample.labels)) is None:
            labels = self._labels[sample.labels] = self._label_bytes(sample.labels)
        return cast(bytes, message.SerializeToString() + labels)

    def _label_bytes(self, labels: Labels) -> bytes:
        message = self._pb.Sample()
        for key, value in labels:
            if isinstance(value, str):
                message.label.add(key=self._string(key), str=self._string(value))
            else:
                message.label.add(key=self._string(key), num=value, num_unit=self._string(key or "number"))
        return cast(bytes, message.SerializeToString())

    def _tables(self) -> bytes:
        pb = self._pb
        locations = [self._location_bytes(frame, i) for frame, i in self._locations.items()]
        comments = [self._string(text) for text in pprof_comments.encode(self._profile, self._columns)]
        tables = pb.Profile(location=locations, comment=comments, mapping=self._mappings())
        for (name, kind, file), i in self._functions.items():
            system_name = name if kind == "native" else f"{name} [{kind}]"
            function = pb.Function(id=i, name=self._string(name), filename=self._string(file))
            function.system_name = self._string(system_name)
            tables.function.append(function.SerializeToString())
        tables.string_table.extend(_escape(text).encode() for text in self._strings)
        return cast(bytes, tables.SerializeToString())

    def _location_bytes(self, frame: Frame, location_id: int) -> bytes:
        location = self._pb.Location(id=location_id, address=frame.address)
        if frame.module is not None:
            location.mapping_id = self._modules.setdefault(frame.module, len(self._modules) + 1)
        function = (frame.name, frame.kind, frame.file)
        location.line.add(
            function_id=self._functions.setdefault(function, len(self._functions) + 1),
            line=frame.line,
        )
        return cast(bytes, location.SerializeToString())

    def _mappings(self) -> list[bytes]:
        with_file = {frame.module for frame in self._locations if frame.file}
        with_line = {frame.module for frame in self._locations if frame.line}
        # Viewers take the first mapping for the program's own.
        modules = sorted(self._modules, key=lambda module: ".so" in module.path or module.path.startswith("["))
        return [
            self._pb.Mapping(
                id=self._modules[module],
                memory_limit=module.size,
                filename=self._string(module.path),
                build_id=self._string(module.build_id),
                has_functions=True,
                has_filenames=module in with_file,
                has_line_numbers=module in with_line,
            ).SerializeToString()
            for module in modules
        ]

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _location(self, frame: Frame) -> int:
        return self._locations.setdefault(frame, len(self._locations) + 1)


class _Decoder:
    """One profile on its way in. ValueError and DecodeError mean a damaged file."""

    def __init__(self, data: bytes, limit: int) -> None:
        self._pb = messages()
        self._outer = self._pb.Profile.FromString(data)
        self._check_counts(limit // _USUAL_PART)
        if not self._outer.string_table:
            raise ValueError("it has no string table")
        self._strings: list[str] = [text.decode(errors="surrogateescape") for text in self._outer.string_table]
        self._comments = [self._string(i) for i in self._outer.comment]
        self._ours = pprof_comments.is_ours(self._comments)
        if self._ours:
            self._strings = [_unescape(text) for text in self._strings]
            self._comments = [self._string(i) for i in self._outer.comment]
        self._modules = dict(self._parts("mapping", self._pb.Mapping))
        self._functions = dict(self._parts("function", self._pb.Function))
        self._locations: dict[int, Stack] = {}
        self._stacks: dict[bytes, Stack] = {}
        self._labels: dict[tuple[tuple[int, int, int, int], ...], Labels] = {}
        self._frames_left = limit // 4  # a small location can stand for many frames, and a stack repeat it

    def _check_counts(self, most: int) -> None:
        """Empty parts take 2 bytes in the file, and a hundred times as much here."""
        outer = self._outer
        for parts in (outer.sample, outer.string_table, outer.location, outer.function, outer.mapping, outer.comment):
            if len(parts) > most:
                raise ValueError(f"it has more than {most} samples, names or places")

    def profile(self) -> Profile:
        """The whole profile."""
        outer = self._outer
        profile = Profile([], start_ns=outer.time_nanos, duration_ns=outer.duration_nanos, comments=self._comments)
        sums = []
        for data in outer.sample_type:
            message = self._pb.ValueType.FromString(data)
            sums.append(ValueType(self._string(message.type), self._string(message.unit)))
        if self._ours:
            columns = pprof_comments.decode(self._comments, profile)
        else:
            columns = [Column(value_type, "") for value_type in sums]
            profile.value_types = sums
        if sums != [column.value_type for column in columns if not column.label]:
            raise ValueError("its value types contradict each other")
        modules = {i: self._module(message) for i, message in self._modules.items()}
        for i, message in self._parts("location", self._pb.Location):
            self._locations[i] = self._frames(message, modules)
        profile.samples = list(self._samples(columns))
        return profile

    def _parts(self, name: str, message_class: Any) -> Iterator[tuple[int, Any]]:
        for data in getattr(self._outer, name):
            message = message_class.FromString(_bounded(data))
            if not message.id:
                raise ValueError(f"a {name} without an id")
            yield message.id, message

    def _module(self, mapping: Any) -> Module | None:
        path, build_id = self._string(mapping.filename), self._string(mapping.build_id).lower()
        if not self._ours and not path and not build_id:
            return None
        if mapping.memory_limit <= mapping.memory_start:
            return Module(path, build_id)
        end = mapping.memory_limit - mapping.memory_start + mapping.file_offset
        return Module(path, build_id, mapping.memory_limit if _is_kernel(path) else end & _U64)

    def _frames(self, location: Any, modules: dict[int, Module | None]) -> Stack:
        """The frames of one location, innermost first: more than one where functions were inlined."""
        module, address = None, location.address
        if location.mapping_id:
            module = _entry(modules, location.mapping_id, "mapping")
            mapping = self._modules[location.mapping_id]
            if not _in_kernel(module):
                address = (address - mapping.memory_start + mapping.file_offset) & _U64
        if not location.line:
            kind: Kind = "kernel" if _in_kernel(module) else "native"
            return (Frame(_unresolved(module, address), kind, module, address),)
        return tuple(self._frame(line, module, address) for line in location.line)

    def _frame(self, line: Any, module: Module | None, address: int) -> Frame:
        if not line.function_id:
            return Frame(_unresolved(module, address), "native", module, address, "", line.line)
        function = _entry(self._functions, line.function_id, "function")
        name, system_name = self._string(function.name), self._string(function.system_name)
        file = self._string(function.filename)
        if self._ours:
            kind = _KINDS.get(system_name[len(name) :], "native")
        elif _in_kernel(module):
            kind = "kernel"
        else:
            kind = "python" if file.endswith(".py") else "native"
        name = name or system_name or _unresolved(module, address)
        return Frame(name, kind, module, address, file, line.line or function.start_line)

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


def _is_kernel(path: str) -> bool:
    return path.startswith(("[kernel", "[guest.kernel"))


def _in_kernel(module: Module | None) -> bool:
    return module is not None and _is_kernel(module.path)


def _unresolved(module: Module | None, address: int) -> str:
    name = os.path.basename(module.path).strip("[]")[-255:] if module else ""  # bounded: one per location
    return f"[{name}+{address:#x}]" if name else f"[{address:#x}]"
