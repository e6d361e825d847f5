"""Prints the table of the NVIDIA driver's commands that ``tracers/ioctls/nvidia.tsv`` is.

Usage: ``nvidia_names.py FOLDER >tracers/ioctls/nvidia.tsv``, with a checkout of NVIDIA/open-gpu-kernel-modules. The
table has names and numbers: escapes (by `_IOC_NR` of the command), UVM's commands, RM controls, classes of RM objects,
the locks that RM controls take, and the RM's status codes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

_HEADERS = "src/common/sdk/nvidia/inc"
_COMMON = "kernel-open/common/inc"
_ESCAPES = re.compile(r"#define (NV_ESC_\w+)\s+\(?(?:(NV_IOCTL_BASE) \+ )?(0x[0-9A-Fa-f]+|\d+)\)?")
_BASE = re.compile(r"#define NV_IOCTL_BASE\s+(\d+)")
_UVM = re.compile(r"#define (UVM_\w+)\s+(?:UVM_IOCTL_BASE\((\d+)\)|(0x[0-9A-Fa-f]+))")
_CONTROL = re.compile(r"#define\s+(NV(\w{4})_CTRL_CMD_\w+)\s+\(?(0x[0-9A-Fa-f]+)U?\)?\s")
_CLASS = re.compile(r"#define\s+(\w+)\s+\(?(0x[0-9A-Fa-f]+)U?\)?\s")
_STATUS = re.compile(r"NV_STATUS_CODE\((\w+),\s+(0x[0-9A-Fa-f]+),")
_METHOD = re.compile(
    r"/\*flags=\*/\s+(0x[0-9A-Fa-f]+)u,\s+/\*accessRight=\*/\S+\s+/\*methodId=\*/\s+(0x[0-9A-Fa-f]+)u,"
)
_NO_GPUS, _ONE_GPU, _TO_PHYSICAL, _READ_ONLY, _NO_API = 0x1, 0x10, 0x40, 0x100, 0x400000
"""RMCTRL_FLAGS_NO_GPUS_LOCK, _GPU_LOCK_DEVICE_ONLY, _ROUTE_TO_PHYSICAL, _API_LOCK_READONLY and _NO_API_LOCK of
src/nvidia/inc/kernel/rmapi/control.h."""
_VERSION = re.compile(r"NVIDIA_VERSION = (\S+)")

Entry = tuple[str, int, str]
"""Kind, number, name."""


def escapes(root: Path) -> Iterator[Entry]:
    base = int(_BASE.findall((root / _COMMON / "nv-ioctl-numbers.h").read_text())[0])
    files = [f"{_COMMON}/nv-ioctl-numbers.h", f"{_COMMON}/nv-ioctl-numa.h"]
    for path in [*files, "src/nvidia/arch/nvalloc/unix/include/nv_escape.h"]:
        for name, relative, number in _ESCAPES.findall((root / path).read_text()):
            yield "escape", int(number, 0) + (base if relative else 0), name


def uvm(root: Path) -> Iterator[Entry]:
    for name in ("uvm_linux_ioctl.h", "uvm_ioctl.h"):
        for called, number, whole in _UVM.findall((root / "kernel-open/nvidia-uvm" / name).read_text()):
            yield "uvm", int(number or whole, 0), called


def controls(root: Path) -> Iterator[Entry]:
    """The upper half of a control's number is its class, which its name begins with."""
    for path in sorted((root / _HEADERS / "ctrl").rglob("*.h")):
        for name, owner, number in _CONTROL.findall(path.read_text()):
            value = int(number, 16)
            is_control = re.fullmatch("[0-9A-F]{4}", owner) and value >> 16 == int(owner, 16) and value & 0xFF00
            if is_control and not name.endswith("_MESSAGE_ID"):
                yield "control", value, name


def classes(root: Path) -> Iterator[Entry]:
    """A class's number is in the name of its header; of several names the last, which is the current one."""
    for path in sorted((root / _HEADERS / "class").glob("cl[0-9a-f][0-9a-f][0-9a-f][0-9a-f].h")):
        wanted = int(path.stem[2:], 16)
        found = [name for name, number in _CLASS.findall(path.read_text()) if int(number, 16) == wanted]
        others = ("NV1_", f"NV{path.stem[2:].upper()}_")  # older names, and constants of the class
        names = [name for name in found if not name.startswith(others)]
        if names:
            yield "class", wanted, names[-1]


def statuses(root: Path) -> Iterator[Entry]:
    for name, number in _STATUS.findall((root / _COMMON / "nvstatuscodes.h").read_text()):
        yield "status", int(number, 16), name


def locks(root: Path) -> Iterator[Entry]:
    """Locks of each control, by the flags of its method: the API's lock, those of GPUs, and whether the GSP is
    asked."""
    for path in sorted((root / "src/nvidia/generated").glob("g_*_nvoc.c")):
        for flags, number in _METHOD.findall(path.read_text()):
            bits = int(flags, 16)
            api = "no API lock" if bits & _NO_API else f"API lock {'read' if bits & _READ_ONLY else 'write'}"
            gpus = "no GPU" if bits & _NO_GPUS else "one GPU" if bits & _ONE_GPU else "all GPUs"
            yield "locks", int(number, 16), ", ".join([api, gpus, *(["GSP"] if bits & _TO_PHYSICAL else [])])


def main() -> int:
    """Prints the table."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    version = _VERSION.findall((root / "version.mk").read_text())[0]
    entries: dict[tuple[str, int], str] = {}
    for each in (escapes, uvm, controls, classes, locks, statuses):
        for kind, number, name in each(root):
            entries.setdefault((kind, number), name)
    print("# Kind, number, name. From the headers and generated sources of NVIDIA/open-gpu-kernel-modules", end=" ")
    print(f"{version}; made by scripts/nvidia_names.py")
    for (kind, number), name in sorted(entries.items()):
        print(f"{kind}\t{number:#x}\t{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
