"""``staprun``: loads a module, gives what it prints, unloads it."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ....converters.base import helpers
from ....converters.base.text import printable
from ...base.parent import end_with_parent
from ..protocol import EngineUnavailable
from .compiling import NAME
from .module_file import ModuleFile

_PATIENCE = 60.0
"""Seconds for the module to be loaded, and to be unloaded."""
_CONTROL = "/proc/systemtap"
_DISABLED = "/proc/sys/kernel/modules_disabled"
_LOADED = "/proc/modules"
_MOST_WORDS = 1 << 22
"""Bytes of what staprun says: a warning for each probe that could not be attached, and at the end what was skipped."""
_TOGETHER = 200
"""Threads in one question: a text of SystemTap has 4,096 characters at most."""
_BUFFER_MB = 16
"""MB per core, between the module and staprun."""
_CAUSES = (
    (
        ("Key was rejected", "Required key not available", "Operation not permitted", "lockdown"),
        "this kernel takes only signed modules (Secure Boot, lockdown)",
        'use a machine where lockdown is off, or sign the module: `man stap`, "SAFETY AND SECURITY" and mokutil(1)',
    ),
    (
        ('Section name ".gnu',),
        "the module's file is not complete",
        "copy it again, or compile it anew",
    ),
    (
        ("Invalid module format", "version magic", "Unknown symbol", "disagrees about version"),
        "the module was compiled for another kernel",
        "compile it with the headers of this very kernel: uname -r",
    ),
    (
        ("members of the following groups", "not permitted to use", "stapdev", "must be root"),
        "this user may not load modules of SystemTap",
        "run it with sudo",
    ),
)


def find_staprun() -> str:
    """EngineUnavailable if there is none, or modules cannot be loaded."""
    path = helpers.find_program("staprun")
    if path is None:
        # On Debian only root and members of a group may run it.
        places = (os.path.join(folder, "staprun") for folder in helpers.FOLDERS)
        if os.geteuid() != 0 and (found := next(filter(os.path.exists, places), "")):
            raise EngineUnavailable(f"this user may not run {found}", "run it with sudo")
        raise EngineUnavailable(
            "there is no staprun",
            "install the package systemtap-runtime",
        )
    if not can_load():
        raise EngineUnavailable("this kernel cannot load modules: there is no /proc/modules", "use another engine")
    if _disabled():
        raise EngineUnavailable(
            "this system loads no modules until it is booted again: kernel.modules_disabled is 1", "use another engine"
        )
    if os.geteuid() != 0:
        raise EngineUnavailable("loading a module takes root", "run it with sudo")
    return path


def can_load() -> bool:
    """Whether the kernel has loadable modules at all."""
    return os.path.exists(_LOADED)


def _disabled() -> bool:
    with contextlib.suppress(OSError), open(_DISABLED) as file:
        return file.read().strip() == "1"
    return False


def loaded() -> list[str]:
    """Names of the modules of this tracer that the kernel has, whoever loaded them."""
    try:
        with open(_LOADED) as file:
            names = [line.partition(" ")[0] for line in file]
    except OSError:
        return []
    return [name for name in names if name.startswith(NAME)]


class Running:
    """A module that is loaded. Whatever happens, `close` unloads it."""

    def __init__(self, staprun: str, module: ModuleFile, settings: Mapping[str, str | int]) -> None:
        """``settings``: the script's variables."""
        self.module = module
        self._staprun = staprun
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._folder = helpers.private_folder("stallscope-stap-")
        file = Path(self._folder.name) / f"{module.name}.ko"
        shutil.copyfile(module.path, file)
        words = [f"{name}={value}" for name, value in settings.items()]
        # -R: a name of its own, so that the same module can be there twice; it works if the file has the module's name.
        self._process = helpers.start(
            [staprun, "-R", "-b", str(_BUFFER_MB), str(file), *words],
            stdout=helpers.PIPE,
            stderr=self._said,
            prepare=end_with_parent(signal.SIGINT),
        )
        assert self._process.stdout
        self.text = self._process.stdout.fileno()
        """Descriptor of what it prints."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def first(self) -> bytes:
        """First output of the module. EngineUnavailable with the cause if it cannot be loaded."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if select.select([self.text], [], [], 0.1)[0]:
                if data := os.read(self.text, 1 << 16):
                    self._folder.cleanup()  # it is loaded; SIGKILL for this process leaves nothing
                    return data
                break
        raise self.refusal()

    def refusal(self) -> EngineUnavailable:
        """Error that says why it could not be loaded."""
        said = self.words()
        for signs, cause, remedy in _CAUSES:
            if any(sign in said for sign in signs):
                return EngineUnavailable(f"{cause}: {_first_line(said)}", remedy)
        return EngineUnavailable(f"staprun failed: {_first_line(said)}", "dmesg may say more")

    def words(self) -> str:
        """Words that it has said on standard error. It writes where its descriptor stands, which is ours, too."""
        return os.pread(self._said.fileno(), _MOST_WORDS, 0).decode(errors="replace")

    def stop(self) -> bool:
        """Asks the script to tell no more events, and to say so when all were told: without that, SystemTap throws away
        what it has not passed on. False if it cannot be asked."""
        return self._tell("stop", "1\n")

    def ask_registers(self, tids: Sequence[int]) -> bool:
        """Asks the script where these threads sleep. False if it cannot be asked."""
        parts = (tids[i : i + _TOGETHER] for i in range(0, len(tids), _TOGETHER))
        return all(self._tell("asleep", ",".join(map(str, part))) for part in parts)

    def _tell(self, what: str, text: str) -> bool:
        for name in self._own():
            with contextlib.suppress(OSError):
                file = os.open(f"{_CONTROL}/{name}/{what}", os.O_WRONLY | os.O_CLOEXEC)
                try:
                    return os.write(file, text.encode()) > 0
                finally:
                    os.close(file)
        return False

    def end(self) -> None:
        """Ends the script. Its last lines are still to be read."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        """Unloads the module."""
        assert self._process.stdout
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        until = time.monotonic() + _PATIENCE
        while self._process.poll() is None and time.monotonic() < until:
            if select.select([self.text], [], [], 0.1)[0] and not os.read(self.text, 1 << 18):
                break
        helpers.wait(self._process, max(until - time.monotonic(), 1))
        helpers.kill(self._process)
        self._process.stdout.close()
        self._unload()
        self._said.close()
        self._folder.cleanup()

    def _unload(self) -> None:
        """A staprun that ended by a signal leaves its module."""
        for name in self._own():
            with contextlib.suppress(OSError):
                helpers.run([self._staprun, "-d", name], seconds=_PATIENCE)

    def _own(self) -> list[str]:
        """The name of its module, which has its number in it."""
        return [name for name in loaded() if name.endswith(f"_{self._process.pid}")]


def _first_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = [line for line in lines if "ERROR" in line or "rror" in line]
    return printable((told or lines or ["it said nothing"])[0])[:200]
