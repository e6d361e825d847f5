"""Encodes a `Profile` as profile.proto. The mapping is described in the package's docstring."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, cast

from ..base.errors import StallscopeError
from ..model import Frame, Labels, Module, Profile, Sample, Stack
from ..model.details import Details, Function, Mapping
from ..model.kinds import kind_of_module
from . import metadata
from .metadata import Column
from .schema import ANSWERED, messages
from .strings import escape
from .wire import bytes_tag, number_tag, signed, sized, varint

_CHUNK = 1000
_U64 = (1 << 64) - 1
_SAMPLE, _ANSWERED = bytes_tag(2), bytes_tag(ANSWERED)
_LOCATION_ID, _VALUE, _LABEL = map(bytes_tag, (1, 2, 3))
_KEY, _STR, _NUM, _NUM_UNIT = map(number_tag, (1, 2, 3, 4))
_ID, _MAPPING_ID, _ADDRESS, _LINE = *map(number_tag, (1, 2, 3)), bytes_tag(4)
_FUNCTION_ID, _LINE_NUMBER, _COLUMN = map(number_tag, (1, 2, 3))
"""Tags of the fields of Profile, Sample, Label, Location and Line: see `schema`."""


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


def default_function(frame: Frame) -> Function:
    """The function written for a frame about which `Details` has nothing more."""
    system_name = frame.name if frame.kind == "native" else f"{frame.name} [{frame.kind}]"
    return Function(system_name, 0, frame.line)


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
    """Encodes one profile. The tables grow as samples are written, so they come last in the file."""

    def __init__(self, profile: Profile, *, with_path: bool = False) -> None:
        """``with_path``: what its answer tells of a critical path is saved, too."""
        self._pb = messages()
        self._with_path = with_path
        self._profile = profile
        self._details = profile.details or Details()
        self._columns = _columns(profile)
        self._strings: dict[str, int] = {"": 0}
        self._locations: dict[tuple[Frame, ...], int] = {}
        """Frames with one address, innermost first → id."""
        self._known: dict[int, bytes] = {}
        """`id` of a frame of the profile → location id, encoded."""
        self._modules: dict[Module, int] = {}
        self._functions: dict[tuple[str, str, str, int], int] = {}
        """(name, system name, file, first line) → id."""
        self._labels: dict[Labels, bytes] = {}
        self._pairs: dict[tuple[str, str | int], bytes] = {}
        self._sums: list[int] = []
        """Columns that are sample values."""
        self._numbers: list[tuple[int, bytes, bytes]] = []
        """Columns that are labels, and what is before and after the number."""
        for module in self._details.mappings:
            self._module(module)

    def chunks(self) -> Iterator[bytes]:
        """Pieces of one serialized Profile: protobuf joins the repeated fields of consecutive pieces."""
        yield self._head()
        self._place_columns()
        samples = iter(self._profile.samples)
        while chunk := [_SAMPLE + sized(self._sample(sample)) for sample in islice(samples, _CHUNK)]:
            yield b"".join(chunk)
        yield self._tables()
        if self._profile.answered:
            parts = _Encoder(self._profile.answered, with_path=True).chunks()
            yield _ANSWERED + sized(b"".join(parts))

    def _head(self) -> bytes:
        details = self._details
        sums = [column.value_type for column in self._columns if not column.label]
        head = self._pb.Profile(time_nanos=self._profile.start_ns, duration_nanos=self._profile.duration_ns)
        for value_type in sums:
            head.sample_type.append(self._value_type(value_type.name, value_type.unit))
        names = [value_type.name for value_type in sums]
        if names:
            default = self._profile.default_value
            head.default_sample_type = self._string(default if default in names else names[0])
        if details.period_type is not None:
            head.period_type = self._value_type(details.period_type.name, details.period_type.unit)
        head.period = details.period
        head.drop_frames, head.keep_frames = self._string(details.drop_frames), self._string(details.keep_frames)
        head.doc_url = self._string(details.doc_url)
        return cast(bytes, head.SerializeToString())

    def _value_type(self, name: str, unit: str) -> bytes:
        return cast(bytes, self._pb.ValueType(type=self._string(name), unit=self._string(unit)).SerializeToString())

    def _place_columns(self) -> None:
        for i, column in enumerate(self._columns):
            if column.label:
                key, unit = (self._string(text) for text in (column.label, column.value_type.unit or column.label))
                self._numbers.append((i, _KEY + varint(key), _NUM_UNIT + varint(unit)))
            else:
                self._sums.append(i)

    def _sample(self, sample: Sample) -> bytes:
        stack, values, labels = sample
        if (named := self._labels.get(labels)) is None:
            named = self._labels[labels] = self._label_bytes(labels)
        if len(values) != len(self._columns):
            raise ValueError(f"a sample has {len(values)} values, for {len(self._columns)} columns")
        made = _LOCATION_ID + sized(self._location_ids(stack)) if stack else b""
        if self._sums:
            made += _VALUE + sized(b"".join([signed(values[i]) for i in self._sums]))
        for i, key, unit in self._numbers:
            made += _LABEL + sized(key + _NUM + signed(values[i]) + unit if values[i] else key + unit)
        return made + named

    def _location_ids(self, stack: Stack) -> bytes:
        """Location ids, innermost first, encoded."""
        locations, groups = self._locations, self._details.groups
        if not groups:
            # By identity first: readers share equal frames, and hashing one costs more than everything else.
            known = self._known
            try:
                return b"".join(map(known.__getitem__, map(id, reversed(stack))))
            except KeyError:
                for frame in stack:
                    if id(frame) not in known:
                        known[id(frame)] = varint(locations.setdefault((frame,), len(locations) + 1))
            return b"".join([known[id(frame)] for frame in reversed(stack)])
        ids, at = [], 0
        frames = stack[::-1]
        while at < len(frames):
            candidates = groups.get(frames[at], ())
            group = next((group for group in candidates if frames[at : at + len(group)] == group), frames[at : at + 1])
            ids.append(varint(locations.setdefault(group, len(locations) + 1)))
            at += len(group)
        return b"".join(ids)

    def _label_bytes(self, labels: Labels) -> bytes:
        pairs = self._pairs
        for pair in labels:
            if pair not in pairs:
                pairs[pair] = self._pair_bytes(*pair)
        return b"".join(map(pairs.__getitem__, labels))

    def _pair_bytes(self, key: str, value: str | int) -> bytes:
        content = _field(_KEY, self._string(key))
        if isinstance(value, str):
            content += _field(_STR, self._string(value))
        else:
            unit = self._details.units.get(key, key or "number")
            content += (_NUM + signed(value) if value else b"") + _field(_NUM_UNIT, self._string(unit))
        return _LABEL + sized(content)

    def _tables(self) -> bytes:
        pb = self._pb
        locations = [self._location_bytes(group, i) for group, i in self._locations.items()]
        generated = metadata.for_people(self._profile)
        texts = [comment for comment in self._profile.comments if isinstance(comment, str)]
        comments = [self._string(text) for text in (*generated, *texts)]
        tables = pb.Profile(location=locations, comment=comments, mapping=self._mappings())
        for (name, system_name, file, start_line), i in self._functions.items():
            function = pb.Function(id=i, name=self._string(name), filename=self._string(file), start_line=start_line)
            function.system_name = self._string(system_name)
            tables.function.append(function.SerializeToString())
        tables.string_table.extend(escape(text).encode() for text in self._strings)
        tables.stallscope = escape(
            metadata.encode(self._profile, self._columns, generated, with_path=self._with_path)
        ).encode()
        return cast(bytes, tables.SerializeToString())

    def _location_bytes(self, group: tuple[Frame, ...], location_id: int) -> bytes:
        """The location of frames that share their address and module."""
        frame = group[0]
        address, made = frame.address, _ID + varint(location_id)
        if frame.module is not None:
            made += _MAPPING_ID + varint(self._module(frame.module))
            mapping = self._details.mappings.get(frame.module)
            if mapping and kind_of_module(frame.module.path) != "kernel":
                address = (frame.address - mapping.offset + mapping.start) & _U64
        if address:
            made += _ADDRESS + varint(address)
        for each in () if frame in self._details.nameless else group:
            found = self._details.functions.get(each) or default_function(each)
            key = (found.name or each.name, found.system_name, each.file, found.start_line)
            line = _FUNCTION_ID + varint(self._functions.setdefault(key, len(self._functions) + 1))
            if found.line:
                line += _LINE_NUMBER + signed(found.line)
            if found.column:
                line += _COLUMN + signed(found.column)
            made += _LINE + sized(line)
        return made

    def _module(self, module: Module) -> int:
        return self._modules.setdefault(module, len(self._modules) + 1)

    def _mappings(self) -> list[bytes]:
        known = self._details.mappings
        with_file = {frame.module for group in self._locations for frame in group if frame.file}
        with_line = {frame.module for group in self._locations for frame in group if frame.line}
        # Viewers assume that the first mapping is the program's own.
        others = [module for module in self._modules if module not in known]
        others.sort(key=lambda module: ".so" in module.path or module.path.startswith("["))
        messages_ = []
        for module in (*known, *others):
            mapping = known.get(module) or Mapping(0, module.size, 0, True, module in with_file, module in with_line)
            message = self._pb.Mapping(
                id=self._modules[module], filename=self._string(module.path), build_id=self._string(module.build_id),
                memory_start=mapping.start, memory_limit=mapping.limit, file_offset=mapping.offset,
                has_functions=mapping.has_functions, has_filenames=mapping.has_filenames,
                has_line_numbers=mapping.has_line_numbers, has_inline_frames=mapping.has_inline_frames,
            )  # fmt: skip
            messages_.append(message.SerializeToString())
        return messages_

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))


def _field(tag: bytes, number: int) -> bytes:
    """A number that is an index or an id; 0 is not written."""
    return tag + varint(number) if number else b""
