"""Control groups made of files: what the kernel shows, versions 1 and 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.converters.model.group_limits import (
    MEMORY,
    PROCESSES,
    READ_BYTES,
    READS,
    WRITES,
    WRITTEN_BYTES,
    GroupLimit,
)
from stallscope.tracers.base import group_limits
from stallscope.tracers.base.group_limits import GroupLimits, disk_and_parts, limits_of, refusals

SECOND_VERSION: frozenset[bytes] = frozenset()


def made(folder: Path, **files: str) -> bytes:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return str(folder).encode()


def told(folder: bytes, controllers: frozenset[bytes] = SECOND_VERSION) -> list[tuple[str, str, str, int, int]]:
    return [(each.kind, each.name, each.device, each.limit, each.count) for each in limits_of(folder, controllers)]


def test_version_2(tmp_path: Path) -> None:
    folder = made(
        tmp_path,
        memory__high="67108864\n",
        memory__max="max\n",
        memory__events="low 0\nhigh 312\nmax 4\noom 0\n",
        io__max="8:0 rbps=1048576 wbps=max riops=max wiops=120\n254:0 rbps=max wbps=5 riops=7 wiops=max\n",
        io__stat="8:0 rbytes=4096 wbytes=0 rios=1 wios=17 dbytes=0 dios=0\n",
        pids__max="100\n",
        pids__events="max 9\n",
    )
    assert told(folder) == [
        (MEMORY, "memory.high", "", 67108864, 312),
        (READ_BYTES, "io.max rbps", "8:0", 1048576, 4096),
        (WRITES, "io.max wiops", "8:0", 120, 17),
        (WRITTEN_BYTES, "io.max wbps", "254:0", 5, 0),
        (READS, "io.max riops", "254:0", 7, 0),
        (PROCESSES, "pids.max", "", 100, 9),
    ]


def test_version_1(tmp_path: Path) -> None:
    folder = made(
        tmp_path,
        memory__limit_in_bytes="33554432\n",
        memory__failcnt="5\n",
        blkio__throttle__read_bps_device="254:0 4194304\n",
        blkio__throttle__write_iops_device="254:0 10\n",
        blkio__throttle__io_service_bytes="254:0 Read 65536\n254:0 Write 1\nTotal 65537\n",
        blkio__throttle__io_serviced="254:0 Read 3\n254:0 Write 4\n",
        pids__max="max\n",
    )
    controllers = frozenset((b"memory", b"blkio", b"pids"))
    assert told(folder, controllers) == [
        (MEMORY, "memory.limit_in_bytes", "", 33554432, 5),
        (READ_BYTES, "blkio.throttle.read_bps_device", "254:0", 4194304, 65536),
        (WRITES, "blkio.throttle.write_iops_device", "254:0", 10, 4),
    ]
    assert [each[0] for each in told(folder, frozenset((b"memory", b"cpu")))] == [MEMORY]


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"memory__high": "max\n", "pids__max": "max\n", "io__max": ""},
        {"memory__high": "-1\n"},
        {"memory__high": "9" * 5000},
        {"memory__high": "\u0664\n"},
        {"io__max": "8 rbps=1\n8:0\n:0 rbps=1\n8:0 rbps=\n8:0 rbps=x wbps\n"},
        {"io__max": "8:0 other=5\n"},
        {"pids__max": "\0\n"},
    ],
)
def test_nothing_is_limited(tmp_path: Path, files: dict[str, str]) -> None:
    assert told(made(tmp_path, **files)) == []
    assert told(b"/nowhere") == []


def test_no_limit_in_version_1(tmp_path: Path) -> None:
    folder = made(
        tmp_path, memory__limit_in_bytes="9223372036854771712\n", blkio__throttle__read_bps_device="\nx 1\n8:0 max\n"
    )
    assert told(folder, frozenset((b"memory", b"blkio"))) == []


@pytest.fixture
def host(tmp_path: Path) -> GroupLimits:
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(f"30 22 0:26 / {tmp_path}/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n")
    made(tmp_path / "unified")
    made(tmp_path / "unified/job", memory__high="100\n", memory__events="high 5\n")
    made(tmp_path / "unified/job/one", pids__max="7\n")
    return GroupLimits(mountinfo)


def test_used_meanwhile_and_by_whom(host: GroupLimits, tmp_path: Path) -> None:
    host.add(11, b"0::/job/one\n")
    host.add(12, b"0::/job\n")
    host.add(13, b"0::/\n")
    host.add(14, b"0::/other\n1:cpu:/x\nmalformed\n0::\n0::/../x\n")
    made(tmp_path / "unified/job", memory__events="high 25\n")
    limits = {limit.name: limit for limit in host.found()}
    assert limits.keys() == {"memory.high", "pids.max"}
    memory, pids = limits["memory.high"], limits["pids.max"]
    assert (memory.cgroup, memory.limit, memory.used, memory.pids) == ("/job", 100, 20, [11, 12])
    assert (pids.cgroup, pids.pids) == ("/job/one", [11])
    made(tmp_path / "unified/job", memory__events="high 3\n")  # it was made anew
    assert {limit.used for limit in host.found()} == {0}


def test_a_group_that_is_gone_keeps_its_values(host: GroupLimits, tmp_path: Path) -> None:
    host.add(11, b"0::/job\n")
    for path in (tmp_path / "unified/job").glob("memory*"):
        path.unlink()
    (limit,) = host.found()
    assert (limit.name, limit.limit, limit.used) == ("memory.high", 100, 0)


def test_bounds(host: GroupLimits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_limits, "_MOST", 1)
    monkeypatch.setattr(group_limits, "MOST_PIDS", 2)
    for pid in range(5):
        host.add(pid, b"0::/job/one\n")
    assert [(limit.name, len(limit.pids)) for limit in host.found()] == [("pids.max", 2)]


def test_part_used() -> None:
    limit = GroupLimit("/", READ_BYTES, "io.max rbps", 1000, 500, 10**9)
    assert limit.part_used == 0.5


def test_what_is_on_a_disk(tmp_path: Path) -> None:
    for device, name, number in (("8:0", "sda1", "8:1"), ("8:1", "holders/dm-0", "253:0"), ("253:0", "slaves", "")):
        place = tmp_path / "dev/block" / device / name
        place.mkdir(parents=True)
        (place / "dev").write_text(f"{number}\n")
    assert disk_and_parts("8:0", tmp_path) == ["8:0", "8:1", "253:0"]
    assert disk_and_parts("9:9", tmp_path) == ["9:9"]


def test_processes_that_were_refused() -> None:
    limit = GroupLimit("/job", PROCESSES, "pids.max", 100, 9, 10**9)
    one = GroupLimit("/one", PROCESSES, "pids.max", 1, 1, 10**9)
    others = [GroupLimit("/", PROCESSES, "pids.max", 100, 0, 10**9), GroupLimit("/", MEMORY, "memory.max", 1, 9, 10**9)]
    assert refusals([limit, *others, one]) == [
        "control group /job may have 100 processes and threads (pids.max): 9 more were refused",
        "control group /one may have 1 process and threads (pids.max): 1 more was refused",
    ]
