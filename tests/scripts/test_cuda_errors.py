"""The script that makes the table of CUDA's errors, with headers like those of CUDA."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "cuda_errors.py"


def test_names_and_numbers_of_headers(tmp_path: Path) -> None:
    (tmp_path / "cuda.h").write_text(
        "#define CUDA_VERSION 13020\ntypedef enum cudaError_enum {\n    CUDA_SUCCESS                   = 0,\n"
        "    CUDA_ERROR_B = 100,\n    CUDA_ERROR_A   = 2,\n} CUresult;\n"
    )
    (tmp_path / "driver_types.h").write_text(
        "enum __device_builtin__ cudaError\n{\n    cudaSuccess =  0,\n    cudaErrorX                  =     1,\n};\n"
        "enum __device_builtin__ other\n{\n    cudaErrorNot = 5\n};\n"
    )
    result = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=True)
    first, *lines = result.stdout.splitlines()
    assert "CUDA 13.2" in first
    assert [line.split("\t") for line in lines] == [
        ["driver", "0x2", "CUDA_ERROR_A"],
        ["driver", "0x64", "CUDA_ERROR_B"],
        ["runtime", "0x1", "cudaErrorX"],
    ]


def test_it_says_what_it_wants() -> None:
    result = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "Usage" in result.stderr
