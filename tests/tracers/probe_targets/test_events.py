"""Names that the user gives, and what is meant by them."""

from __future__ import annotations

import sys

import pytest
from stallscope.tracers.probe_targets.events import Events, EventTarget, is_event, nearest
from stallscope.tracers.probe_targets.targets import Target

HERE = (1, 2)


@pytest.mark.parametrize(
    ("text", "group", "name", "is_meant"),
    [
        ("u:libx.so:sale", "shop", "sale", True),
        ("u:libx.so:sale", "shop", "resale", False),
        ("u:libx.so:shop:s*", "shop", "sale", True),
        ("u:libx.so:sh?p:s*", "ship", "sale", True),
        ("u:libx.so:other:s*", "shop", "sale", False),
        ("u:libx.so:/ale$/", "shop", "sale", True),
        ("u:libx.so:re:^ale", "shop", "sale", False),
        ("t:sched:sched_process_*", "sched", "sched_process_exec", True),
        ("t:sched:sched_process_*", "scheduling", "sched_process_exec", False),
        ("t:*:*exec", "sched", "sched_process_exec", True),
        ("k:vfs_read", "", "vfs_read", True),
        ("k:vfs_*", "", "ext4_read", False),
        ("k:/read$/", "", "ext4_read", True),
        ("k:re:^vfs", "", "vfs_read", True),
    ],
)
def test_patterns(text: str, group: str, name: str, is_meant: bool) -> None:
    assert is_event(text)
    assert EventTarget.parse(text).matches(group, name) is is_meant


@pytest.mark.parametrize(
    "text", ["u:libx.so", "u::x", "u:libx.so:", "t:sched", "t::x", "t:sched:", "k:", "k:a:b", "u:libx.so:re:(", "k:/(/"]
)
def test_wrong_ones(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|regular"):
        EventTarget.parse(text)


@pytest.mark.parametrize(
    ("file", "path", "is_meant"),
    [
        ("libc", "/lib/libc.so.6", True),
        ("libc", "/lib/libcap.so.2", False),
        ("libc.so.6", "/lib/libc.so.6", True),
        ("trainer", "/opt/trainer", True),
        ("trainer", "/opt/trainer3.11", True),
        ("trainer", "/opt/trainers", False),
        (sys.executable, "/opt/other", False),
    ],
)
def test_files(file: str, path: str, is_meant: bool) -> None:
    events = Events.all_of([], [EventTarget.parse(f"u:{file}:x")])
    assert events.has_usdt(path, HERE) is is_meant
    assert events.looks_into(path, HERE, is_program=True) is is_meant
    assert not events.has_functions(path, HERE)
    assert events.wants_usdt("p", "x", path, HERE) is is_meant


def test_functions_are_wanted_whatever_leaves_them() -> None:
    events = Events.all_of([Target.parse("libx.so:*")], [])
    assert events.has_functions("/opt/libx.so", HERE)
    assert not events.has_usdt("/opt/libx.so", HERE)
    for name in ("getenv", "_Z3foov", "_setjmp", "f.cold"):
        assert events.wants(name, "/opt/libx.so", HERE)
        assert not events.is_unsafe(name, "/opt/libx.so", HERE)


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(OSError, match="No such file"):
        EventTarget.parse("u:/no/such/file:x")


def test_similar_names() -> None:
    target = EventTarget.parse("t:sched:sched_proces_exec")
    assert nearest([target], ["sched:sched_process_exec", "irq:irq_handler_exit"]) == ["sched:sched_process_exec"]
    assert nearest([EventTarget.parse("u:libx.so:slae")], ["shop:sale", "shop:audit"]) == ["shop:sale"]
