from __future__ import annotations

import pytest
from stallscope.converters.readers.base.python_frames import kind_of, root_labels


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        *((file, "python") for file in ("a/b.py", "m.pyx", "<string>", "<frozen zipimport>")),
        *((file, "native") for file in ("m.c", "libc.so.6", "", "<", "py")),
    ],
)
def test_kind(file: str, kind: str) -> None:
    assert kind_of(file) == kind


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ('process 12:"python3 "a b"; rm"', {"pid": 12, "process": 'python3 "a b"; rm'}),
        ('process 12:""', {"pid": 12}),
        ("thread (13): a; b\n", {"tid": 13, "thread": "a; b\n"}),
        ("thread (13)", {"tid": 13}),
        ("thread (0x7F12AB)", {"thread": "0x7F12AB"}),
        ("thread (0x7F12AB): io", {"thread": "io"}),
        ("thread (x)", {}),
        ('process 1234567890123456789:"x"', {}),
        ("process", {}),
        ("processing 12", {}),
    ],
)
def test_roots_of_py_spy(name: str, labels: dict[str, object]) -> None:
    assert root_labels(name) == labels
