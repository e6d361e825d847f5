"""Output of --list for things that are counted. Nothing is attached."""

from __future__ import annotations

import re

import pytest
from runner import FOLDER
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.command import event_list
from stallscope.tracers.command.event_list import check, lines
from stallscope.tracers.kernel.tracepoints import Field
from stallscope.tracers.probe_targets.events import Chosen, Events, EventTarget
from stallscope.tracers.probe_targets.targets import Target

USDT = FOLDER / "usdt"


def events(*texts: str, functions: tuple[str, ...] = ()) -> Events:
    return Events.all_of(map(Target.parse, functions), map(EventTarget.parse, texts))


def test_usdt_probes_with_their_arguments() -> None:
    file, audit, look, sale, last = lines(events(f"u:{USDT}:*"), None, ())
    assert file == str(USDT)
    assert re.fullmatch(
        r"  0x[0-9a-f]{12}  shop:audit  no arguments  1 place, switched on by a semaphore, about 1 µs a hit", audit
    )
    assert "shop:look  no arguments  2 places, about 1 µs a hit" in look
    assert "shop:sale  2 arguments (8@%rdi -4@%esi)  1 place" in sale
    assert last == "3 events: 3 can be counted"


def test_functions_and_places_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_list, "chosen_in_kernel", lambda _: Chosen(["a:b"], ["vfs_read"]))
    monkeypatch.setattr(event_list, "fields", lambda _: [Field("pid_t", "pid"), Field("char[16]", "c\x1bomm")])
    monkeypatch.setattr(event_list, "has_kprobes", lambda: False)
    found = list(lines(events(functions=(f"{USDT}:sell",)), None, ()))
    assert re.fullmatch(r"  0x[0-9a-f]{12}  sell  about 11? µs a call", found[1])
    assert found[2:5] == [
        "kernel",
        "  t:a:b  pid: pid_t, c\\x1bomm: char[16]",
        "  k:vfs_read  no: this kernel takes no probes on its functions",
    ]
    assert found[5] == "3 events: 2 can be counted"


def test_nothing_matches() -> None:
    with pytest.raises(StallscopeError, match="nothing matches"):
        list(lines(events(f"u:{USDT}:nothing"), None, ()))


def test_before_a_trace() -> None:
    check(events(f"u:{USDT}:sale", functions=(f"{USDT}:sell",)))
    with pytest.raises(StallscopeError, match="has nothing for") as caught:
        check(events(f"u:{USDT}:sael"))
    assert caught.value.remedy == "it has shop:sale"
    with pytest.raises(StallscopeError, match="has nothing for") as caught:
        check(events(f"u:{FOLDER}/sleeps:x"))
    assert caught.value.remedy == "it has no USDT probes, or no such function"
    with pytest.raises(StallscopeError, match="not an ELF file"):
        check(events(f"u:{__file__}:x"))
