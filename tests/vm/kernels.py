"""The kernels that the VM lane boots."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Kernel:
    """A kernel to boot.

    ``suite`` and ``package``: where Debian's archive has it, or its source. Without, it is built from the source tree
    ``KERNEL_SRC``.
    ``short``: belongs to the set that `make test` runs.
    ``shares``: how it mounts the host's files, ``9p`` or ``virtiofs``.
    """

    name: str
    stands_for: str
    suite: str = ""
    package: str = "linux-image-amd64"
    short: bool = False
    shares: str = "9p"

    @property
    def from_source(self) -> bool:
        return not self.suite or self.package.startswith("linux-source-")

    @property
    def series(self) -> str:
        """First two numbers of the kernel's version."""
        return self.name.partition("-")[0]

    @property
    def fragments(self) -> tuple[Path, ...]:
        """Fragments that are merged into its configuration, where it is built from source."""
        names = ("base", *self.name.split("-")[1:])
        return tuple(Path(__file__).with_name(f"kernel-{name}.config") for name in names)


KERNELS = (
    Kernel("5.10", "Debian 11", suite="bullseye"),
    Kernel("5.15", "the generation of Ubuntu 22.04 and DGX OS 6"),
    Kernel("5.15-nobpf", "a kernel that is built without BPF and loads modules"),
    Kernel("6.1", "Debian 12", suite="bookworm", short=True),
    Kernel("6.1-nobpf", "the same without BPF", suite="bookworm", package="linux-source-6.1"),
    Kernel("6.1-cloud", "Debian 12 in a cloud", suite="bookworm", package="linux-image-cloud-amd64", shares="virtiofs"),
    Kernel("6.12", "Debian 13", suite="trixie", short=True),
    Kernel("7.2", "Debian unstable", suite="sid", short=True),
)


def named(name: str) -> Kernel:
    """KeyError: no such kernel."""
    return {kernel.name: kernel for kernel in KERNELS}[name]


def cache_folder() -> Path:
    """Folder in which packages and images are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "stallscope" / "vm"
