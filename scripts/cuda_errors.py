"""Prints the table of CUDA's errors that ``tracers/probe_targets/errors.tsv`` is.

Usage: ``cuda_errors.py FOLDER >tracers/probe_targets/errors.tsv``, with the folder of CUDA's headers (cuda.h,
driver_types.h).
The table has names and numbers: of CUresult, which the driver's functions return, and of cudaError.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_VERSION = re.compile(r"#define CUDA_VERSION (\d+)")
_RESULT = re.compile(r"^ *(CUDA_ERROR_\w+) *= *(\d+)", re.MULTILINE)
_ERRORS = re.compile(r"enum __device_builtin__ cudaError\s*\{(.*?)\};", re.DOTALL)
_ERROR = re.compile(r"^ *(cudaError\w+) *= *(\d+)", re.MULTILINE)


def main(folder: Path) -> None:
    driver, runtime = (folder / "cuda.h").read_text(), (folder / "driver_types.h").read_text()
    version = int(_VERSION.findall(driver)[0])
    release = f"{version // 1000}.{version % 1000 // 10}"
    print(f"# Kind, number, name. From the headers of CUDA {release}; made by scripts/cuda_errors.py")
    for kind, found in (("driver", _RESULT.findall(driver)), ("runtime", _ERROR.findall(_ERRORS.findall(runtime)[0]))):
        for name, number in sorted(found, key=lambda each: int(each[1])):
            print(f"{kind}\t{int(number):#x}\t{name}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(print(__doc__, file=sys.stderr) or 2)
    main(Path(sys.argv[1]))
