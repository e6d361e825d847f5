"""The script that makes the table of the NVIDIA driver's names, with headers like those of the driver."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "nvidia_names.py"
FILES = {
    "version.mk": "NVIDIA_VERSION = 1.2.3\n",
    "kernel-open/common/inc/nv-ioctl-numbers.h": "#define NV_IOCTL_BASE       200\n"
    "#define NV_ESC_CARD_INFO             (NV_IOCTL_BASE + 0)\n",
    "kernel-open/common/inc/nv-ioctl-numa.h": "#define NV_ESC_NUMA_INFO         (NV_IOCTL_BASE + 15)\n",
    "kernel-open/common/inc/nvstatuscodes.h": 'NV_STATUS_CODE(NV_OK,      0x00000000, "Success")\n',
    "src/nvidia/arch/nvalloc/unix/include/nv_escape.h": "#define NV_ESC_RM_CONTROL      0x2A\n",
    "kernel-open/nvidia-uvm/uvm_linux_ioctl.h": "#define UVM_INITIALIZE      0x30000001\n",
    "kernel-open/nvidia-uvm/uvm_ioctl.h": "#define UVM_FREE     UVM_IOCTL_BASE(34)\n",
    "src/common/sdk/nvidia/inc/ctrl/ctrl2080/ctrl2080gpu.h": "#define NV2080_CTRL_CMD_GPU_GET (0x20800102U) /* x */\n"
    "#define NV2080_CTRL_CMD_GPU_GET_PARAMS_MESSAGE_ID (0x2U)\n"
    "#define NV2080_CTRL_CMD_GPU_SOME_FLAG (0x00000001)\n"
    "#define NV5070_CTRL_CMD_SYSTEM_GET (0x50700709U)\n",
    "src/nvidia/generated/g_x_nvoc.c": "".join(
        f"/*flags=*/      {flags:#x}u,\n        /*accessRight=*/0x0u,\n        /*methodId=*/   {number:#x}u,\n"
        for flags, number in ((0x118, 0x20800102), (0x48, 0x2080012F), (0x400109, 0x201))
    ),
    "src/common/sdk/nvidia/inc/class/cl0080.h": "#define NV01_DEVICE_0      (0x80U) /* x */\n"
    "#define NV0080_ALLOC_PARAMETERS_MESSAGE_ID (0x0080U)\n",
}


def test_names_and_numbers_of_headers(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    result = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=True)
    first, *lines = result.stdout.splitlines()
    assert "open-gpu-kernel-modules 1.2.3" in first
    assert [line.split("\t") for line in lines] == [
        ["class", "0x80", "NV01_DEVICE_0"],
        ["control", "0x20800102", "NV2080_CTRL_CMD_GPU_GET"],
        ["control", "0x50700709", "NV5070_CTRL_CMD_SYSTEM_GET"],
        ["escape", "0x2a", "NV_ESC_RM_CONTROL"],
        ["escape", "0xc8", "NV_ESC_CARD_INFO"],
        ["escape", "0xd7", "NV_ESC_NUMA_INFO"],
        ["locks", "0x201", "no API lock, no GPU"],
        ["locks", "0x20800102", "API lock read, one GPU"],
        ["locks", "0x2080012f", "API lock write, all GPUs, GSP"],
        ["status", "0x0", "NV_OK"],
        ["uvm", "0x22", "UVM_FREE"],
        ["uvm", "0x30000001", "UVM_INITIALIZE"],
    ]


def test_it_says_what_it_wants() -> None:
    result = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "Usage" in result.stderr
