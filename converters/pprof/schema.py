"""The messages of pprof's profile.proto (package perftools.profiles), declared in Python.

Names, numbers and types of the fields are facts of the format, as listed by its publisher
(github.com/google/pprof, proto/profile.proto); fields that we neither write nor read are left out and skipped.

Two more differences do not show in the bytes (a protobuf string, bytes and sub-message look alike):
strings are declared as bytes, because other programs' profiles contain names that are not UTF-8;
the parts of a Profile are declared as bytes, so that each is built and parsed alone, in bounded memory.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

_PACKAGE = "perftools.profiles"
STALLSCOPE, ANSWERED = 5000, 5001
"""Numbers of our own fields in message Profile, see `metadata`: other programs skip unknown fields. The second one is
another Profile."""
_MESSAGES = {
    "Profile": {
        "sample_type": (1, "bytes*"),  # ValueType
        "sample": (2, "bytes*"),  # Sample
        "mapping": (3, "bytes*"),  # Mapping
        "location": (4, "bytes*"),  # Location
        "function": (5, "bytes*"),  # Function
        "string_table": (6, "bytes*"),
        "drop_frames": (7, "int64"),
        "keep_frames": (8, "int64"),
        "time_nanos": (9, "int64"),
        "duration_nanos": (10, "int64"),
        "period_type": (11, "bytes"),  # ValueType
        "period": (12, "int64"),
        "comment": (13, "int64*"),
        "default_sample_type": (14, "int64"),
        "doc_url": (15, "int64"),
        "stallscope": (STALLSCOPE, "bytes"),
        "answered": (ANSWERED, "bytes"),
    },
    "ValueType": {"type": (1, "int64"), "unit": (2, "int64")},
    "Sample": {"location_id": (1, "uint64*"), "value": (2, "int64*"), "label": (3, "Label*")},
    "Label": {"key": (1, "int64"), "str": (2, "int64"), "num": (3, "int64"), "num_unit": (4, "int64")},
    "Mapping": {
        "id": (1, "uint64"),
        "memory_start": (2, "uint64"),
        "memory_limit": (3, "uint64"),
        "file_offset": (4, "uint64"),
        "filename": (5, "int64"),
        "build_id": (6, "int64"),
        "has_functions": (7, "bool"),
        "has_filenames": (8, "bool"),
        "has_line_numbers": (9, "bool"),
        "has_inline_frames": (10, "bool"),
    },
    "Location": {"id": (1, "uint64"), "mapping_id": (2, "uint64"), "address": (3, "uint64"), "line": (4, "Line*")},
    "Line": {"function_id": (1, "uint64"), "line": (2, "int64"), "column": (3, "int64")},
    "Function": {
        "id": (1, "uint64"),
        "name": (2, "int64"),
        "system_name": (3, "int64"),
        "filename": (4, "int64"),
        "start_line": (5, "int64"),
    },
}
"""Message → field → (number, type); ``*`` marks a repeated field, int64 is also used for an index into string_table."""


@cache
def messages() -> Any:
    """The message classes by name: ``messages().Sample()``. Imports protobuf (about 15 ms) on the first call."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="stallscope/profile.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for field_name, (number, type_name) in fields.items():
            _declare(message.field.add(name=field_name, number=number), type_name)
    pool = descriptor_pool.DescriptorPool()  # our own: another library may have registered the real file
    pool.AddSerializedFile(file.SerializeToString())
    return SimpleNamespace(
        **{
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
            for name in _MESSAGES
        }
    )


def _declare(field: Any, type_name: str) -> None:
    repeated = type_name.endswith("*")
    type_name = type_name.rstrip("*")
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if type_name in _MESSAGES:
        field.type = field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{type_name}"
    else:
        field.type = {
            "bytes": field.TYPE_BYTES,
            "int64": field.TYPE_INT64,
            "uint64": field.TYPE_UINT64,
            "bool": field.TYPE_BOOL,
        }[type_name]
