"""The remark on stacks that end in a file whose tables the module lacks."""

from __future__ import annotations

from stallscope.converters.model import Frame, Module
from stallscope.tracers.engines.named_rows import Place
from stallscope.tracers.engines.stap.missing_tables import remarks

LIBPYTHON = "/usr/lib/libpython3.11.so.1.0"


def place(outermost: str, *, tid: int = 1, kind: str = "native") -> Place:
    frame = Frame("[f]", kind, Module(outermost) if outermost else None)  # type: ignore[arg-type]
    return Place(1, tid, "sleeping", (frame, Frame("read", "native", Module("/lib/libc.so.6"))))


def test_what_stacks_end_in() -> None:
    rows = [
        {place(LIBPYTHON): [300, 2], place("/opt/a b.so"): [90, 1], place("/opt/whole"): [500, 1]},
        {place(LIBPYTHON): [105, 1], place("/opt/rare"): [5, 1], place("", kind="kernel"): [9000, 1]},
    ]
    assert remarks(rows, {LIBPYTHON, "/opt/a b.so", "/opt/rare", "/opt/none"}) == [
        "40.5 % of the time in user code is in stacks that end in libpython3.11.so.1.0, 9.0 % in a b.so, whose tables "
        f"are not in the module: compile it anew with --stap-symbols {LIBPYTHON} --stap-symbols '/opt/a b.so'"
    ]


def test_nothing_is_said_of_little() -> None:
    rows = [{place(LIBPYTHON): [1, 1], place("/opt/whole"): [199, 1]}]
    assert remarks(rows, {LIBPYTHON}) == []
    assert remarks(rows, set()) == []
    assert remarks([{place(LIBPYTHON): [0, 1]}], {LIBPYTHON}) == []
    assert remarks([], {LIBPYTHON}) == []


def test_a_file_that_was_replaced_is_not_recommended() -> None:
    for path in ("/opt/x.so", "/opt/x.so (deleted)"):  # as the symboliser and as SystemTap name it
        (said,) = remarks([{place(path): [10, 1]}], {"/opt/x.so (deleted)"})
        assert said.endswith("x.so (deleted): replaced since it was loaded; start the program anew")


def test_a_hostile_path() -> None:
    path = "/tmp/\x1b[31m;reboot"
    (said,) = remarks([{place(path): [10, 1]}], {path})
    assert "\x1b" not in said
    assert "--stap-symbols '/tmp/" in said
