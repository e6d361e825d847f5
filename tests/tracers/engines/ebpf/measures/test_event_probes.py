"""Places that get probes, and what is said of the others. Nothing is attached."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from runner import FOLDER
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.engines.ebpf.measures import event_probes
from stallscope.tracers.engines.ebpf.measures.event_probes import EventProbes, chosen_in_kernel
from stallscope.tracers.holder.links import Place
from stallscope.tracers.holder.making import NOT_SUPPORTED
from stallscope.tracers.images.maps import Mapping
from stallscope.tracers.kernel.attaching import Attached
from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.uprobes import Way
from stallscope.tracers.probe_targets.events import Chosen, Events, EventTarget
from stallscope.tracers.probe_targets.targets import Target

ME = os.getpid()
USDT = FOLDER / "usdt"


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Place]]:
    seen: list[Sequence[Place]] = []

    def attach(loaded: object, way: Way, names: tuple[str, str, str], fd: int, places: Sequence[Place]) -> Attached:
        assert names == ("", "events_user", "")
        seen.append(places)
        return Attached()

    monkeypatch.setattr(event_probes, "attach_possible", attach)
    return seen


def probes(*texts: str, functions: Sequence[str] = ()) -> EventProbes:
    wanted = Events.all_of(map(Target.parse, functions), map(EventTarget.parse, texts))
    return EventProbes(None, Way.MULTI, "", wanted)  # type: ignore[arg-type]


def mapping_of(path: Path) -> Mapping:
    status = path.stat()
    return Mapping(0x1000, 0x2000, 0, str(path), status.st_dev, status.st_ino)


def test_a_probe_with_several_places_has_one_number(attached: list[Sequence[Place]]) -> None:
    found = probes(f"u:{USDT}:*", functions=[f"{USDT}:sell"])
    found.look(ME, mapping_of(USDT))
    found.look(ME, mapping_of(USDT))
    assert [probe.name for probe in found.functions] == ["sell", "shop:audit", "shop:look", "shop:sale"]
    (places,) = attached
    assert sorted(place.cookie for place in places) == [0, 1, 2, 2, 3]
    assert [bool(place.counter) for place in sorted(places, key=lambda place: place.cookie)] == [
        False,
        True,
        False,
        False,
        False,
    ]
    said = next(iter(found.remarks()))
    assert said == (
        "probes were on 1 function and 3 USDT probes in 4 places of 1 file, at the entry alone, by multi links"
    )


def test_what_the_kernel_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def attach(*of: object) -> Attached:
        places = of[-1]
        assert isinstance(places, list)
        return Attached(refused=dict.fromkeys(places[1:2], NOT_SUPPORTED))

    monkeypatch.setattr(event_probes, "attach_possible", attach)
    found = probes(f"u:{USDT}:look")
    found.look(ME, mapping_of(USDT))
    assert any("left out 1 function" in remark and "shop:look" in remark for remark in found.remarks())


def test_a_file_without_them(attached: list[Sequence[Place]]) -> None:
    found = probes(f"u:{USDT}:sael")
    found.look(ME, mapping_of(USDT))
    assert not attached
    assert "usdt has no function that a TARGET matches: it has shop:sale" in list(found.remarks())


def test_tracepoints_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["sched:sched_switch", "sched:sched_process_exec", "irq:irq_handler_exit"]
    monkeypatch.setattr(event_probes, "tracepoints", lambda: names)
    monkeypatch.setattr(event_probes, "kernel_functions", lambda: ["vfs_read", "vfs_write"])

    def chosen(*texts: str) -> Chosen:
        return chosen_in_kernel(Events.all_of([], map(EventTarget.parse, texts)))

    assert chosen("t:sched:*", "t:*:sched_switch", "k:vfs_*") == Chosen(names[:2], ["vfs_read", "vfs_write"])
    with pytest.raises(StallscopeError, match="there is no tracepoint sched:sched_swich") as caught:
        chosen("t:sched:sched_swich")
    assert "sched:sched_switch" in caught.value.remedy
    with pytest.raises(StallscopeError, match="there is no function of the kernel zzzz") as caught:
        chosen("k:zzzz")
    assert "kallsyms" in caught.value.remedy
    monkeypatch.setattr(event_probes, "MOST_IN_KERNEL", 2)
    with pytest.raises(StallscopeError, match="3 tracepoints match, and at most 2"):
        chosen("t:*:*")


def test_refusals_in_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    links: list[str] = []

    class Link:
        def close(self) -> None:
            return

    def attach(_: object, program: str, name: str, number: int) -> Link:
        if name.startswith("bad"):
            raise BpfError("no", 22, [])
        links.append(f"{program} {name} {number}")
        return Link()

    monkeypatch.setattr(event_probes, "attach_function", attach)
    monkeypatch.setattr(event_probes, "attach_tracepoint", attach)
    found = probes("k:x")
    found.attach_in_kernel(Chosen(["a:b"], ["bad", "vfs_read"]))
    assert links == ["events_tracepoint a:b 0", "events_kernel vfs_read 2"]
    assert any("left out 1 function" in remark and "bad" in remark for remark in found.remarks())
    monkeypatch.setattr(event_probes, "has_kprobes", lambda: False)
    with pytest.raises(StallscopeError, match="takes no probes on its functions"):
        probes("k:x").attach_in_kernel(Chosen((), ["bad"]))
    monkeypatch.setattr(event_probes, "has_kprobes", lambda: True)
    with pytest.raises(StallscopeError, match="takes no probe on bad"):
        probes("k:x").attach_in_kernel(Chosen((), ["bad"]))
