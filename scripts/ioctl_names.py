"""Prints the table of ioctl names and numbers that ``tracers/ioctls/linux.tsv`` is.

Usage: ``ioctl_names.py --source TEXT [-I FOLDER]… >tracers/ioctls/linux.tsv``. The names are those of the macros in the
kernel's exported headers (``FOLDER``, before the compiler's own), the numbers are what the C compiler makes of them on
this architecture. ``--source`` names the headers and their version; it stands in the table's first line.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_ENCODED = re.compile(r"\b_IO(?:R|W|WR)?(?:_BAD)?\s*\(|\b[A-Z0-9_]*_IO(?:R|W|WR)?\s*\(")
"""A macro that is made with the macros of asm-generic/ioctl.h, or with a header's own ones around them."""
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\(?\w+\s*\+\s*(?:0x)?[0-9a-fA-F]+\)?")
_DEFINE = re.compile(r"#define ([A-Za-z_]\w*) (.+)")
_NEW_IDENTIFIER = re.compile(r"^<stdin>:(\d+):", re.MULTILINE)
_NO_COMMANDS = re.compile(
    r"_?(?:IOC|_IO)_|_IO[RW]*|.*_(?:MASK|SHIFT|SIZE|IOCTL_BASE|IOC_MAGIC)|TIOCSER_TEMT|VT_AUTO|VT_ACKACQ|CDROM_(?:AUDIO_.*|LBA|MSF|DATA_TRACK|LEADOUT)"
)
_NEEDED = (
    "stddef.h",
    "sys/time.h",
    "linux/ioctl.h",
    "linux/types.h",
    "asm/termbits.h",
    "linux/serial.h",
    "linux/filter.h",
    "linux/fiemap.h",
    "linux/blktrace_api.h",
    "linux/major.h",
    "linux/raid/md_p.h",
)
"""Headers that other headers take for granted."""
EVERY = ""
"""The family of commands that any file can take."""


class Header(NamedTuple):
    """``family``: of devices. ``plain``: names whose values are plain numbers, not made with `_IOC`; "" for none.

    ``only``: names to take, of those that qualify; "" for all.
    """

    family: str
    path: str
    plain: str = ""
    only: str = ""


HEADERS = (
    Header(EVERY, "asm/ioctls.h", "FIO.*", "FIO.*"),
    Header(EVERY, "linux/fs.h", "", "FI.*|FS_IOC_.*"),
    Header(EVERY, "linux/fsverity.h"),
    Header(EVERY, "linux/fscrypt.h"),
    Header("tty", "asm/ioctls.h", "T(?:C|IOC).*", "T(?:C|IOC).*"),
    Header("tty", "linux/kd.h", "(?:GIO|PIO|KD|KI)[A-Z0-9_]+", "(?:GIO_|PIO_|KDG|KDS|KDM|KDE|KDD|KDA|KDU|KDF|KIOC).*"),
    Header("tty", "linux/vt.h", "VT_[A-Z]+", "VT_(?:OPENQRY|[GS]ETMODE|GETSTATE|SENDSIG|RELDISP|(?:WAIT)?ACTIVATE|.*)"),
    Header("socket", "linux/sockios.h", "SIOC.*"),
    Header("socket", "asm/sockios.h", "SIOC.*"),
    Header("socket", "linux/wireless.h", "SIOC.*"),
    Header("tun", "linux/if_tun.h"),
    Header("ppp", "linux/ppp-ioctl.h"),
    Header("block", "linux/fs.h", "", "BLK.*"),
    Header("block", "linux/blkpg.h"),
    Header("block", "linux/blkzoned.h"),
    Header("block", "linux/pr.h"),
    Header("block", "linux/nvme_ioctl.h"),
    Header("block", "linux/hdreg.h", "HDIO_.*"),
    Header("block", "linux/cdrom.h", "CDROM.*|DVD_[A-Z_]+", "CDROM[A-Z_]*|DVD_(?:READ_STRUCT|WRITE_STRUCT|AUTH)"),
    Header("block", "scsi/sg.h", "SG_(?:IO|[GS]ET_.*|EMULATED_HOST|SCSI_RESET|NEXT_CMD_LEN)", "SG_.*"),
    Header("loop", "linux/loop.h", "LOOP_(?:SET|CLR|GET|CHANGE|CONFIGURE|CTL).*"),
    Header("nbd", "linux/nbd.h"),
    Header("md", "linux/raid/md_u.h"),
    Header("dm", "linux/dm-ioctl.h"),
    Header("nvme", "linux/nvme_ioctl.h"),
    Header("fuse", "linux/fuse.h"),
    Header("btrfs", "linux/btrfs.h"),
    Header("autofs", "linux/auto_fs.h"),
    Header("kvm", "linux/kvm.h"),
    Header("vhost", "linux/vhost.h"),
    Header("vfio", "linux/vfio.h"),
    Header("drm", "drm.h"),
    Header("kfd", "linux/kfd_ioctl.h"),
    Header("random", "linux/random.h"),
    Header("input", "linux/input.h"),
    Header("uinput", "linux/uinput.h"),
    Header("hidraw", "linux/hidraw.h"),
    Header("rtc", "linux/rtc.h"),
    Header("watchdog", "linux/watchdog.h"),
    Header("perf", "linux/perf_event.h"),
    Header("userfaultfd", "linux/userfaultfd.h"),
    Header("seccomp", "linux/seccomp.h"),
    Header("namespace", "linux/nsfs.h"),
    Header("sync", "linux/sync_file.h"),
    Header("dmabuf", "linux/dma-buf.h"),
    Header("dmaheap", "linux/dma-heap.h"),
    Header("udmabuf", "linux/udmabuf.h"),
    Header("video", "linux/videodev2.h"),
    Header("media", "linux/media.h"),
    Header("usb", "linux/usbdevice_fs.h"),
    Header("i2c", "linux/i2c-dev.h", "I2C_(?:RETRIES|TIMEOUT|SLAVE|SLAVE_FORCE|TENBIT|FUNCS|RDWR|PEC|SMBUS)", "I2C_.*"),
    Header("spi", "linux/spi/spidev.h"),
    Header("gpio", "linux/gpio.h"),
    Header("mtd", "mtd/mtd-user.h"),
    Header("ptp", "linux/ptp_clock.h"),
    Header("pps", "linux/pps.h"),
    Header("ipmi", "linux/ipmi.h"),
    Header("rdma", "rdma/rdma_user_ioctl.h"),
    Header("binder", "linux/android/binder.h"),
    Header("sgx", "asm/sgx.h"),
)


class Command(NamedTuple):
    """One line of the table."""

    family: str
    number: int
    name: str


def candidates(header: Header, folders: Sequence[str]) -> list[str]:
    """Names of the object-like macros that look like commands, in the order of their definition."""
    text = _gcc(["-E", "-dD", *_included(folders), "-"], f"#include <{header.path}>\n").stdout
    found = []
    for name, value in _DEFINE.findall(text):
        plain = header.plain and re.fullmatch(header.plain, name) and _NUMBER.match(value)
        if not (plain or _ENCODED.search(value)) or _NO_COMMANDS.fullmatch(name):
            continue
        if not header.only or re.fullmatch(header.only, name):
            found.append(name)
    return [name for name in found if _of(header, name, text)]


def _of(header: Header, name: str, text: str) -> bool:
    """Whether the macro is defined in the header itself; for one of ``asm`` also in the generic one."""
    place = ""
    generic = header.path.replace("asm/", "asm-generic/") if header.path.startswith("asm/") else header.path
    for line in text.splitlines():
        if line.startswith("# "):
            place = line
        elif line.startswith(f"#define {name} "):
            return f'/{header.path}"' in place or f'/{generic}"' in place
    return False


def numbers(header: Header, names: Sequence[str], folders: Sequence[str]) -> list[Command]:
    """The values of the names. A name whose types the header does not define is left out, and told."""
    names = list(names)
    while names:
        lines = [f'P("{name}", {name})' for name in names]
        result = _gcc(["-S", "-o", "-", "-w", *_included(folders), "-"], _program(header, lines))
        if not result.returncode:
            return [
                Command(header.family, int(number) & 0xFFFFFFFF, name)
                for name, number in re.findall(r"@@(\w+) \$?(-?\d+)@@", result.stdout)
            ]
        first = _program(header, []).count("\n")
        bad = {int(number) - first for number in _NEW_IDENTIFIER.findall(result.stderr)}
        wrong = [names[place] for place in sorted(bad) if 0 <= place < len(names)]
        if not wrong:
            raise SystemExit(f"{header.path}: {result.stderr.strip()}")
        print(f"{header.path}: left out {', '.join(wrong)}", file=sys.stderr)
        names = [name for name in names if name not in wrong]
    return []


def _program(header: Header, lines: Iterable[str]) -> str:
    """Program in whose assembly the values stand as numbers: nothing has to run."""
    needed = "".join(f"#include <{path}>\n" for path in _NEEDED)
    head = f"{needed}#include <{header.path}>\n#define P(name, value) "
    head += 'asm volatile("@@" name " %0@@" : : "i"((int)(value)));\nvoid commands(void) {\n'
    return head + "".join(f"{line}\n" for line in lines) + "}\n"


def _included(folders: Sequence[str]) -> list[str]:
    return ["-xc", *(f"-I{folder}" for folder in folders)]


def _gcc(arguments: list[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["gcc", *arguments], input=text, capture_output=True, text=True, check=False)


def table(folders: Sequence[str]) -> list[Command]:
    """All commands, sorted; of several names for one number in a family the first one that is defined."""
    found: dict[tuple[str, int], Command] = {}
    for header in HEADERS:
        probe = _gcc(["-E", *_included(folders), "-"], f"#include <{header.path}>\n")
        if probe.returncode:
            raise SystemExit(f"{header.path}: {probe.stderr.strip()}")
        for command in numbers(header, candidates(header, folders), folders):
            found.setdefault((command.family, command.number), command)
    return sorted(found.values())


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="the headers and their version")
    parser.add_argument("-I", dest="folders", action="append", default=[], help="a folder of headers")
    given = parser.parse_args()
    print(f"# ioctl commands: family of devices, number, name. From {given.source}; made by scripts/ioctl_names.py")
    for family, number, name in table(given.folders):
        print(f"{family}\t{number:#x}\t{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
