"""Reading of events from rings. What becomes of them: tests/tracers/engines/test_sharing.py."""

from __future__ import annotations

from stallscope.tracers.engines.ebpf.measures.recorder import RING
from stallscope.tracers.engines.ebpf.measures.shared_rings import PLACE
from stallscope.tracers.engines.ebpf.probes import object_path
from stallscope.tracers.engines.sharing import EVENT
from stallscope.tracers.kernel.bpfobject import Object


def test_layout_is_that_of_the_probes() -> None:
    opened = Object(object_path())
    try:
        assert opened.find_map("ioctl_events").value_size == EVENT.itemsize
        assert opened.find_map("ioctl_rings").value_size == RING.itemsize
        assert opened.find_map("ioctl_places").value_size == PLACE.itemsize
    finally:
        opened.close()
