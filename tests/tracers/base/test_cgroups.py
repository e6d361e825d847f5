"""Control groups made of files: what the kernel shows, versions 1 and 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.converters.model.processes import CpuLimit
from stallscope.tracers.base import cgroups
from stallscope.tracers.base.cgroups import Cgroups


class Machine:
    """Hierarchies below a folder, and the mountinfo that tells of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mountinfo = folder / "mountinfo"
        self.mountinfo.write_text("22 1 0:20 / /proc rw - proc proc rw\n")

    def mount(self, version: int, name: str, root: str = "/", options: str = "rw,cpu,cpuacct") -> Path:
        top = self.folder / name
        top.mkdir()
        kind = "cgroup2 cgroup2 rw" if version == 2 else f"cgroup cgroup {options}"
        point = str(top).replace(" ", "\\040")
        with self.mountinfo.open("a") as file:
            file.write(f"30 22 0:26 {root} {point} rw,relatime shared:4 - {kind}\n")
        return top

    def cgroups(self) -> Cgroups:
        return Cgroups(self.mountinfo)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def v2(group: Path, quota: str, periods: int = 0, throttled: int = 0, usec: int = 0) -> None:
    group.mkdir(parents=True, exist_ok=True)
    (group / "cpu.max").write_text(f"{quota}\n")
    counts = f"nr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {usec}\nnr_bursts 0\n"
    (group / "cpu.stat").write_text(f"usage_usec 5\n{counts}")


def v1(group: Path, quota: int, period: int, counted: tuple[int, int, int] = (0, 0, 0)) -> None:
    periods, throttled, ns = counted
    group.mkdir(parents=True, exist_ok=True)
    (group / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (group / "cpu.cfs_period_us").write_text(f"{period}\n")
    (group / "cpu.stat").write_text(f"nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time {ns}\n")


def test_version_2_and_the_groups_above(machine: Machine) -> None:
    top = machine.mount(2, "unified")
    v2(top / "pods", "400000 100000", 100, 10, 2_000)
    v2(top / "pods" / "one", "max 100000")
    v2(top / "pods" / "one" / "main", "50000 100000", 7, 1, 500)
    groups = machine.cgroups()
    folders = groups.of(b"0::/pods/one/main\n")
    v2(top / "pods", "400000 100000", 200, 60, 9_000)
    v2(top / "pods" / "one" / "main", "50000 100000", 57, 49, 2_500_500)
    groups.look()
    assert groups.limits(folders) == (
        CpuLimit("/pods/one/main", 50_000, 100_000, 50, 48, 2_500_000_000),
        CpuLimit("/pods", 400_000, 100_000, 100, 50, 7_000_000),
    )


def test_version_1(machine: Machine) -> None:
    top = machine.mount(1, "cpu")
    machine.mount(1, "memory", options="rw,memory")
    v1(top, -1, 100_000)
    v1(top / "box", 150_000, 100_000, (5, 5, 5))
    groups = machine.cgroups()
    folders = groups.of(b"9:name=systemd:/x\n4:memory:/box\n3:cpuset:/box\n2:cpu,cpuacct:/box\n0::/\n")
    v1(top / "box", 150_000, 100_000, (15, 8, 45))
    groups.look()
    assert groups.limits(folders) == (CpuLimit("/box", 150_000, 100_000, 10, 3, 40),)


def test_both_versions_side_by_side(machine: Machine) -> None:
    """The controller of a hybrid machine is in version 1: the groups of version 2 have no quota."""
    cpu, unified = machine.mount(1, "cpu"), machine.mount(2, "unified")
    v1(cpu / "a", 20_000, 10_000)
    (unified / "b").mkdir()
    groups = machine.cgroups()
    assert groups.limits(groups.of(b"1:cpu:/a\n0::/b\n")) == (CpuLimit("/a", 20_000, 10_000),)


def test_a_group_that_is_gone_keeps_what_was_seen_last(machine: Machine) -> None:
    top = machine.mount(2, "unified")
    v2(top / "job", "100000 100000", 10, 1, 1)
    groups = machine.cgroups()
    folders = groups.of(b"0::/job\n")
    v2(top / "job", "100000 100000", 30, 11, 5)
    groups.look()
    for path in [*(top / "job").iterdir()]:
        path.unlink()
    groups.look()
    assert groups.limits(folders) == (CpuLimit("/job", 100_000, 100_000, 20, 10, 4_000),)


def test_a_quota_that_is_lifted_and_one_that_comes(machine: Machine) -> None:
    top = machine.mount(2, "unified")
    v2(top / "job", "100000 100000", 10)
    groups = machine.cgroups()
    folders = groups.of(b"0::/job\n")
    v2(top / "job", "200000 100000", 20)
    groups.look()
    assert groups.limits(folders) == (CpuLimit("/job", 200_000, 100_000, 10),)
    v2(top / "job", "max 100000", 20)
    groups.look()
    assert groups.limits(folders) == ()


def test_a_container_that_sees_its_own_group_as_the_top(machine: Machine) -> None:
    top = machine.mount(1, "cpu", root="/docker/4711")
    v1(top, 200_000, 100_000)
    v1(top / "sub", 50_000, 100_000)
    groups = machine.cgroups()
    names = [limit.cgroup for limit in groups.limits(groups.of(b"2:cpu:/docker/4711/sub\n"))]
    assert names == ["/docker/4711/sub", "/docker/4711"]
    assert groups.of(b"2:cpu:/docker/47110\n") == ()
    assert groups.of(b"2:cpu:/other\n") == ()


def test_what_is_outside_of_our_namespace_is_not_followed(machine: Machine) -> None:
    top = machine.mount(2, "unified")
    v2(machine.folder / "elsewhere", "1000 100000")
    v2(top, "max 100000")
    assert machine.cgroups().of(b"0::/../elsewhere\n") == ()


def test_hostile_names(machine: Machine) -> None:
    top = machine.mount(2, "with space")
    v2(top / "a:b\x1b[2J\udcff", "1000 100000")
    groups = machine.cgroups()
    (limit,) = groups.limits(groups.of(b"0::/a:b\x1b[2J\xff\n"))
    assert limit == CpuLimit("/a:b\x1b[2J\udcff", 1000, 100_000)


@pytest.mark.parametrize("quota", ["", "x y", "1000", "1000 0", "-5 100000", "1000 100000 7"])
def test_what_is_no_quota(machine: Machine, quota: str) -> None:
    top = machine.mount(2, "unified")
    v2(top / "job", quota)
    groups = machine.cgroups()
    assert groups.limits(groups.of(b"0::/job\n")) == ()


@pytest.mark.parametrize("stat", ["", "nr_periods 1\n", "nr_periods x\nnr_throttled 1\nthrottled_usec 1\n", "\xff\n"])
def test_counts_that_are_missing(machine: Machine, stat: str) -> None:
    top = machine.mount(2, "unified")
    v2(top / "job", "1000 100000")
    (top / "job" / "cpu.stat").write_text(stat)
    groups = machine.cgroups()
    assert groups.limits(groups.of(b"0::/job\n")) == (CpuLimit("/job", 1000, 100_000),)


@pytest.mark.parametrize("membership", [b"", b"\n", b"0", b"::", b"x:y:z\n", b"7:cpu:/a\n", b"\xff\n"])
def test_no_groups(machine: Machine, membership: bytes) -> None:
    groups = machine.cgroups()
    assert groups.of(membership) == ()
    groups.look()
    assert groups.limits(()) == ()


def test_mountinfo_that_is_missing_or_strange(tmp_path: Path) -> None:
    assert Cgroups(tmp_path / "none").of(b"0::/x\n") == ()
    (tmp_path / "strange").write_bytes(b"1 2 - cgroup2\n- cgroup2 a b\n\xff\n1 2 3:4 / - cgroup2 x y\n")
    assert Cgroups(tmp_path / "strange").of(b"0::/x\n") == ()


def test_the_number_of_groups_is_bounded(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "_MOST", 3)
    top = machine.mount(2, "unified")
    for i in range(5):
        v2(top / f"job-{i}", "1000 100000")
    groups = machine.cgroups()
    found = [limit.cgroup for i in range(5) for limit in groups.limits(groups.of(f"0::/job-{i}\n".encode()))]
    assert found == ["/job-0", "/job-1"]
