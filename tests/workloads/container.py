"""A workload in a container of our own: other mounts, other process ids, the program at another path. Needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from runner import Workload

INSIDE = "/opt/app"
"""Path of the program for those in the container; no such folder exists outside."""

_ENTER = """
set -e
folder=$1 kind=$2 program=$3
shift 3
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/root" "$folder/upper" "$folder/work"
cd "$folder"
if [ "$kind" = overlay ]; then
    mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work overlay root
else
    mount --bind root root
    for part in bin lib lib64 usr etc; do
        [ -e "/$part" ] || continue
        mkdir "root/$part"
        mount --rbind "/$part" "root/$part"
    done
    mkdir root/proc root/opt root/tmp root/dev
fi
mkdir -p root/opt/app root/old
cp "$program" root/opt/app/
mount -t proc proc root/proc
cd root
pivot_root . old
umount --lazy old
exec "/opt/app/${program##*/}" "$@"
"""


class Container(Workload):
    """A started workload in new mount and pid namespaces. `pid`, `pids` and `tids` are what the host calls them.

    ``kind`` is what its files are on: ``overlay`` (the host's root below) or ``tmpfs``. Its folder goes with it.
    """

    def __init__(self, name: str, *arguments: object, kind: str = "tmpfs", linger: bool = False) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="container-"))
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        prefix = [*unshare, "sh", "-c", _ENTER, "sh", str(self._folder), kind]
        try:
            super().__init__(name, *arguments, linger=linger, prefix=prefix)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self.name = name
        self.inside = dict(zip(self.tids, self.tids, strict=True))
        """Container's ids of the threads, by the host's."""
        self._translate()

    def _translate(self) -> None:
        starter = self._process.pid
        (child,) = Path(f"/proc/{starter}/task/{starter}/children").read_text().split()
        outside = {}
        for task in Path(f"/proc/{child}/task").iterdir():
            ids = next(line for line in (task / "status").read_text().splitlines() if line.startswith("NSpid:"))
            outside[int(ids.split()[-1])] = int(task.name)
        self.inside = {outside[tid]: tid for tid in self.tids}
        self.pid = int(child)
        self.pids = [self.pid]
        self.tids = [outside[tid] for tid in self.tids]

    @property
    def program(self) -> Path:
        """The program's file, by a path of the host's."""
        return Path(f"/proc/{self.pid}/root{INSIDE}/{self.name}")

    def replace_program(self, other: Path) -> None:
        """Another file takes the place of the program's, which is thereby deleted, as an upgrade does it."""
        new = self.program.with_name("new")
        shutil.copy(other, new)
        os.replace(new, self.program)

    def kill(self) -> None:
        super().kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def can_contain() -> bool:
    """Whether new namespaces and mounts in them are allowed here."""
    command = ["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0
