"""Boots a kernel under QEMU, runs one job in it over the host's own files, and brings back what it said."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from image import Image

QEMU = "qemu-system-x86_64"
VIRTIOFSD = "/usr/lib/qemu/virtiofsd"
MEMORY = 3072
"""MB of a guest."""

_START = """\
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
mkdir -p /run/tmp
mount --bind /tmp /run/tmp
mount -t tmpfs tmp /tmp
{modules}
cd {folder}
export {environment}
cat /proc/uptime >/run/share/started
setsid sh /run/share/job </dev/null >/run/share/stdout 2>/run/share/stderr
echo $? >/run/share/status
dmesg >/run/share/dmesg
sync
echo o >/proc/sysrq-trigger
sleep 60
"""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job. ``status`` is None when the guest never came to its end; ``log`` is all that there is to read.

    ``boot_seconds``: the guest's own clock when the job began; ``seconds``: host time for all of it.
    """

    status: int | None
    stdout: str
    stderr: str
    dmesg: str
    console: str
    boot_seconds: float
    seconds: float
    tries: int
    share: Path

    @property
    def log(self) -> str:
        parts = (("status", str(self.status)), ("stdout", self.stdout), ("stderr", self.stderr))
        parts += (("dmesg", self.dmesg), ("console", self.console))
        return "\n".join(f"===== {name}\n{text}" for name, text in parts)


def run(image: Image, job: str, *, folder: Path, keep: Path, timeout: float = 180) -> Outcome:
    """Runs the shell script ``job`` as root in ``folder``. ``keep``: a folder for what it writes to /run/share.

    A guest that does not come to its end is booted once more: under emulation one in some hundreds hangs.
    """
    for number in (1, 2):
        shutil.rmtree(keep, ignore_errors=True)
        keep.mkdir(parents=True)
        (keep / "job").write_text(job)
        (keep / "start").write_text(_start(image, folder))
        begin = time.monotonic()
        console = _boot(image, keep, timeout)
        outcome = _outcome(keep, console, time.monotonic() - begin, number)
        (keep / "log").write_text(outcome.log)
        if outcome.status is not None:
            break
    return outcome


def _start(image: Image, folder: Path) -> str:
    modules = image.root / "lib" / "modules"
    bind = f"mkdir -p /lib/modules; mount --bind {shlex.quote(str(modules))} /lib/modules" if modules.exists() else ""
    environment = {"HOME": "/root", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "STALLSCOPE_VM": image.kernel.name}
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    if folder.is_relative_to("/tmp"):
        inside = shlex.quote(str(folder.relative_to("/tmp")))
        bind += f"\nmkdir -p {shlex.quote(str(folder))}; mount --bind /run/tmp/{inside} {shlex.quote(str(folder))}"
    return _START.format(modules=bind, folder=shlex.quote(str(folder)), environment=exports)


def _boot(image: Image, share: Path, timeout: float) -> str:
    """The console's text."""
    virtiofs = image.kernel.shares == "virtiofs"
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        shares = _over_virtiofs(stack, temporary, share) if virtiofs else _over_9p(share)
        command = [
            *(QEMU, "-accel", "tcg,thread=single", "-cpu", "Nehalem", "-smp", "2", "-m", str(MEMORY)),
            *("-display", "none", "-nodefaults", "-no-reboot", "-monitor", "none"),
            *("-serial", f"file:{temporary / 'console'}"),
            *("-kernel", str(image.vmlinux), "-initrd", str(image.initramfs)),
            *("-append", f"console=ttyS0 quiet panic=-1 mitigations=off shares={image.kernel.shares}"),
            *("-device", "virtio-rng-pci"),
            *shares,
        ]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            said += f"no end after {timeout:.0f} s".encode()
        console = temporary / "console"
        return said.decode(errors="replace") + (console.read_text(errors="replace") if console.exists() else "")


def _over_9p(share: Path) -> list[str]:
    options = []
    for tag, path, more in (("host", "/", ",readonly=on"), ("share", str(share), "")):
        options += ["-fsdev", f"local,id={tag},path={path},security_model=none,multidevs=remap{more}"]
        options += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    return options


def _over_virtiofs(stack: ExitStack, temporary: Path, share: Path) -> list[str]:
    options = ["-object", f"memory-backend-memfd,id=memory,size={MEMORY}M,share=on", "-numa", "node,memdev=memory"]
    for tag, path in (("host", "/"), ("share", str(share))):
        socket = temporary / f"{tag}.socket"
        daemon = subprocess.Popen(
            [VIRTIOFSD, f"--socket-path={socket}", "-o", f"source={path}", "-o", "cache=auto", "-o", "sandbox=chroot"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(temporary / f"{tag}.log").open("wb"),
        )
        stack.callback(_end, daemon)
        until = time.monotonic() + 10
        while not socket.exists() and daemon.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        options += ["-chardev", f"socket,id={tag},path={socket}"]
        options += ["-device", f"vhost-user-fs-pci,chardev={tag},tag={tag}"]
    return options


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _outcome(share: Path, console: str, seconds: float, tries: int) -> Outcome:
    def read(name: str) -> str:
        file = share / name
        return file.read_text(errors="replace") if file.exists() else ""

    status, started = read("status").strip(), read("started").split()
    return Outcome(
        int(status) if status else None,
        *(read(name) for name in ("stdout", "stderr", "dmesg")),
        console,
        float(started[0]) if started else 0.0,
        seconds,
        tries,
        share,
    )
