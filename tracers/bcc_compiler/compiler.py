"""Compiles C into BPF programs with bcc, in a process of its own: bcc's compiler takes 130 MB, and may crash."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...converters.base import helpers
from ...converters.base.errors import StallscopeError
from .place import HEADERS, INSTALL, find

_CHILD = Path(__file__).with_name("child.py")
SECONDS = 120
"""Seconds for a compiler that hangs: one on a busy machine takes seconds."""
_INSTRUCTION = 8
_DETAILS = 60
"""Lines of the compiler's messages."""
_LARGEST = 64 << 20
"""Bytes of the programs as text, and of messages."""


class Compiled(NamedTuple):
    """``programs``: instructions by name, in which maps have the numbers of the C text. ``version``: bcc's."""

    programs: dict[str, bytes]
    version: str


def compile_c(text: str, names: Sequence[str], *, folder: Path | None = None, seconds: float = SECONDS) -> Compiled:
    """The programs ``names`` of a C text. StallscopeError without bcc, or if it fails. ``folder``: bcc's module."""
    module = folder or find()
    command = [sys.executable, "-I", str(_CHILD), str(module), *names]
    environment = {"BCC_KERNEL_SOURCE": str(HEADERS), "LC_ALL": "C.UTF-8"}
    try:
        done = helpers.run(
            command, seconds=seconds, most=_LARGEST, data=text.encode(), environment=environment, rights=helpers.OURS
        )
    except OSError as error:
        raise StallscopeError(f"bcc cannot be started: {error}", INSTALL) from None
    if done.is_late:
        raise StallscopeError(f"bcc did not compile within {seconds:g} s", "try again when less runs here")
    return _result(done, names)


def _result(done: helpers.Done, names: Sequence[str]) -> Compiled:
    messages = done.errors.decode("utf-8", "replace")
    details = "\n".join(messages.splitlines()[:_DETAILS])
    try:
        found: Any = json.loads(done.output)
    except ValueError:
        found = None
    if done.status == -signal.SIGKILL:
        raise StallscopeError(
            "bcc was ended by SIGKILL", "the machine may be out of memory: dmesg says so", details=details
        )
    if not isinstance(found, dict):
        raise StallscopeError(f"bcc ended with status {done.status}", INSTALL, details=details)
    if found.get("error") == "import":
        raise StallscopeError(f"bcc cannot be loaded: {found.get('what')}", INSTALL, details=details)
    version = str(found.get("version"))
    if "error" in found:
        reason = next((line for line in messages.splitlines() if "error:" in line), str(found.get("what")))
        raise StallscopeError(
            f"bcc {version} does not compile it: {reason}",
            "bcc 0.18 or newer is needed; -v shows all that it says",
            details=details,
        )
    programs = {str(name): bytes.fromhex(code) for name, code in found["programs"].items()}
    if programs.keys() != set(names) or any(not code or len(code) % _INSTRUCTION for code in programs.values()):
        raise StallscopeError(f"bcc {version} has made no programs", INSTALL, details=details)
    return Compiled(programs, version)
