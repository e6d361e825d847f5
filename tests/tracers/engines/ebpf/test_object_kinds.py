from __future__ import annotations

import stat

import pytest
from stallscope.converters.model import wait_objects as kinds
from stallscope.tracers.base.filesystems import TERMINALS
from stallscope.tracers.engines.ebpf.object_kinds import kind_of
from stallscope.tracers.kernel import objects
from stallscope.tracers.kernel.objects import ObjectRecord

EMPTY = ObjectRecord(*[0] * 19, bytes(16), bytes(16))


@pytest.mark.parametrize(
    ("mode", "given", "kind"),
    [
        (stat.S_IFREG, {}, kinds.FILE),
        (stat.S_IFDIR, {}, kinds.FOLDER),
        (stat.S_IFCHR, {}, kinds.DEVICE),
        (stat.S_IFCHR, {"magic": TERMINALS}, kinds.TERMINAL),
        (stat.S_IFBLK, {}, kinds.DEVICE),
        (stat.S_IFIFO, {}, kinds.PIPE),
        (0, {}, kinds.OTHER),
        (stat.S_IFSOCK, {"family": objects.UNIX}, kinds.UNIX),
        (stat.S_IFSOCK, {"family": objects.INET, "protocol": objects.TCP}, kinds.TCP),
        (stat.S_IFSOCK, {"family": objects.INET6, "protocol": objects.UDP}, kinds.UDP),
        (stat.S_IFSOCK, {"family": objects.INET, "protocol": 132}, kinds.SOCKET),
        (stat.S_IFSOCK, {"family": 38}, kinds.SOCKET),
    ],
)
def test_kinds(mode: int, given: dict[str, int], kind: str) -> None:
    assert kind_of(EMPTY._replace(mode=mode | 0o600, **given)) == kind
