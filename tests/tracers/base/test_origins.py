from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stallscope.converters.model.origins import LONGEST
from stallscope.tracers.base.origins import Origins, group_in, variables_in


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        (b"SLURM_JOB_ID=77\0SLURM_STEP_ID=0\0", {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}),
        (b"MASTER_ADDR=node1\0MASTER_PORT=29500", {"MASTER_ADDR": "node1", "MASTER_PORT": "29500"}),
        (b"PMIX_NAMESPACE=a\0PMIX_NAMESPACE=b\0", {"PMIX_NAMESPACE": "a"}),
        (b"PMI_SIZE=\0PMI_SIZE\0XPMI_SIZE=1\0pmi_size=1\0SECRET=PMI_SIZE=1\0", {}),
        (b"PMIX_NAMESPACE=\x1b[2J\xff\n\0", {"PMIX_NAMESPACE": "?[2J??"}),
        (b"PMIX_NAMESPACE=" + b"9" * 1000, {"PMIX_NAMESPACE": "9" * LONGEST}),
        (b"", {}),
    ],
)
def test_variables_and_nothing_else(environment: bytes, found: dict[str, str]) -> None:
    assert variables_in(environment) == found


@pytest.mark.parametrize(
    ("membership", "folder"),
    [
        (b"0::/slurm/job_7\n", "/slurm/job_7"),
        (b"3:cpu,cpuacct:/a\n2:memory:/a/long\n0::/\n", "/a/long"),
        (b"3:cpu:/a:b\n", "/a:b"),
        (b"0::/\n", "/"),
        (b"nonsense\n0:\n", ""),
        (b"", ""),
        (b"0::/" + b"x" * 1000 + b"\n", "/" + "x" * (LONGEST - 1)),
    ],
)
def test_control_groups(membership: bytes, folder: str) -> None:
    assert group_in(membership) == folder


def test_a_process_has_its_parents_its_program_and_its_begin() -> None:
    program = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    with subprocess.Popen([sys.executable, "-I", "-c", program]) as process:
        children: list[int] = []
        until = time.monotonic() + 30
        while not children and time.monotonic() < until:
            text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            children = [int(pid) for pid in text.split() if Path(f"/proc/{pid}/comm").read_text() == "sleep\n"]
        origin = Origins().of(children[0], b"PMI_SIZE=4\0", b"0::/x\n", has_rank=False)
        for pid in (*children, process.pid):
            os.kill(pid, 9)
    assert origin
    assert [each.pid for each in origin.ancestors[:2]] == [process.pid, os.getpid()]
    assert origin.ancestors[0].process.endswith("-c"), "with its script"
    assert origin.executable.rpartition("/")[2] in ("sleep", "coreutils", "busybox")
    assert (origin.cgroup, origin.variables, origin.source) == ("/x", {"PMI_SIZE": "4"}, "")
    assert origin.began > 0


def test_who_is_gone_has_none() -> None:
    assert Origins().of(1 << 22, b"", b"", has_rank=True) is None


def test_the_first_process_is_no_ancestor() -> None:
    origin = Origins().of(os.getpid(), b"", b"", has_rank=True)
    assert origin
    assert 1 not in [each.pid for each in origin.ancestors]
    assert origin.source == "environment"
