from __future__ import annotations

import pytest
from stallscope.tracers.engines.ebpf.measures.ioctl_rings import IoctlRings
from stallscope.tracers.kernel import perf_events


@pytest.mark.parametrize(("cores", "slots"), [(1, 1 << 17), (2, 1 << 16), (3, 1 << 15), (512, 1 << 11)])
def test_cores_share_the_memory(cores: int, slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_events, "online_cpus", lambda: list(range(cores)))
    monkeypatch.setattr(perf_events, "possible_cpus", lambda: 600)
    rings = IoctlRings()
    assert rings.sizes() == {"ioctl_events": 2 * cores * slots, "ioctl_rings": 1200}
    assert rings.knobs() == {}
    rings.close()
    assert rings.memory == []


def test_places_are_as_many_as_events() -> None:
    sizes = IoctlRings(places=True).sizes()
    assert sizes["ioctl_places"] == sizes["ioctl_events"]
    assert list(sizes) == ["ioctl_events", "ioctl_rings", "ioctl_places"], "in the order of the memory"
    assert IoctlRings(places=True).knobs() == {"record_ioctl_places": 1}
