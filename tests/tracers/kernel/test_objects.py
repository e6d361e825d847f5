from __future__ import annotations

import struct

from stallscope.tracers.kernel import objects
from stallscope.tracers.kernel.objects import ObjectRecord, device_text

RECORDED = ObjectRecord(
    tgid=1, id=1 << 63 | 5, inode=3, magic=0x9FA0, peer=4, address=0, dev=8 << 20 | 1, rdev=7, mode=0o140777, fd=9,
    netns=10, access=2, family=objects.INET, socket_type=12, protocol=objects.TCP, state=10, local_port=80,
    remote_port=5432, tid=11, local=bytes([127, 0, 0, 1]) + bytes(12), remote=bytes([10, 0, 0, 5]) + bytes(12),
)  # fmt: skip


def test_what_it_tells() -> None:
    assert RECORDED.device == "8:1"
    assert RECORDED.kind == 0o140000
    assert RECORDED.listens
    assert not RECORDED._replace(family=0).listens
    assert not RECORDED._replace(state=1).listens
    assert RECORDED.ends == ("127.0.0.1:80", "10.0.0.5:5432")
    assert RECORDED._replace(remote_port=0).ends == ("127.0.0.1:80", "")
    of_six = RECORDED._replace(family=objects.INET6, local=bytes(15) + b"\1", remote=bytes(10) + b"\xff\xff\x0a\0\0\5")
    assert of_six.ends == ("[::1]:80", "10.0.0.5:5432")
    assert device_text(struct.unpack("<I", struct.pack("<I", 254 << 20))[0]) == "254:0"
