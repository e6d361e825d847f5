from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stallscope.tracers.base import ranks
from stallscope.tracers.base.ranks import gpus_of, ranks_in


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        (b"RANK=3\0LOCAL_RANK=1\0WORLD_SIZE=8\0", {"rank": "3", "local-rank": "1", "world-size": "8"}),
        (b"CUDA_VISIBLE_DEVICES=0,1\0SLURM_PROCID=5\0", {"cuda-visible-devices": "0,1", "slurm-procid": "5"}),
        (b"OMPI_COMM_WORLD_RANK=2\0PMI_RANK=2", {"ompi-comm-world-rank": "2", "pmi-rank": "2"}),
        (b"RANK=3\0RANK=4\0", {"rank": "3"}),
        (b"RANK=\0RANK\0=3\0XRANK=3\0rank=3\0RANKS=3\0", {}),
        (b"PASSWORD=secret\0NODE_RANK=1\0TOKEN=RANK=3\0", {}),
        (b"RANK=\x1b[2J\xff\n=3\0", {"rank": "?[2J??=3"}),
        (b"CUDA_VISIBLE_DEVICES=" + b"9" * 1000, {"cuda-visible-devices": "9" * 125 + "..."}),
        (b"", {}),
    ],
)
def test_variables_and_nothing_else(environment: bytes, found: dict[str, str]) -> None:
    assert ranks_in(environment) == found


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ranks, "PROC", tmp_path)
    folder = tmp_path / "7" / "fd"
    folder.mkdir(parents=True)
    return folder


def opened(folder: Path, *targets: str) -> None:
    for i, target in enumerate(targets):
        os.symlink(target, folder / str(i))


def test_gpus_are_those_whose_devices_are_open(files: Path) -> None:
    opened(files, "/dev/null", "/dev/nvidiactl", "/dev/nvidia10", "/dev/nvidia3", "/dev/nvidia3", "/dev/nvidia-uvm")
    assert gpus_of(7) == {"gpu": "3,10"}


def test_other_files_are_none(files: Path) -> None:
    opened(files, "/srv/dev/nvidia3", "/dev/nvidia3 (deleted)", "/dev/nvidia", "/dev/nvidia3/x", "/dev/nvidia12345")
    assert gpus_of(7) == {}
    assert gpus_of(8) == {}


def test_only_so_many_files_are_looked_at(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(files, *(f"/dev/nvidia{i}" for i in range(30)))
    assert len(gpus_of(7)["gpu"].split(",")) == 16
    monkeypatch.setattr(ranks, "_FILES", 2)
    assert len(gpus_of(7)["gpu"].split(",")) == 2


def test_a_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"RANK": "5", "HOME": "/secret"},
    ) as process:
        assert process.stdout
        process.stdout.readline()  # the kernel shows the environment once the program has begun
        data = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert gpus_of(process.pid) == {}
        process.kill()
    assert ranks_in(data) == {"rank": "5"}
