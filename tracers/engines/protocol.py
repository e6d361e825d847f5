"""Interface of an engine: a command makes a request; the engine says whether it can, and returns a profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ...converters.base.errors import StallscopeError
from ..base.scope import Scope
from ..measures.protocol import Measure

if TYPE_CHECKING:
    from ...converters.model import Profile
    from ..symbols.lines import LineTool


@dataclass(frozen=True)
class Request:
    """Request of a command."""

    scope: Scope
    measures: tuple[Measure, ...]
    what: str
    """The measured quantity, which begins the title: "Off-CPU time"."""
    command: tuple[str, ...] = ()
    """Started for the trace, and traced from its first instruction to its end."""
    duration: float | None = None
    """Seconds; None: until the scope's processes end, or Ctrl-C."""
    wait: bool = True
    """Whether to wait for unwind tables before the trace begins."""
    quiet: bool = False
    """Standard output is for our own data; the command's goes to standard error."""
    lines: LineTool | None = None
    """Names source lines."""
    every: float | None = None
    """Seconds of an interval, whose profile goes to ``publish``; None: one profile."""
    every_option: str = "--every"
    """Option by which the user asked for intervals."""
    publish: Callable[[Profile], None] | None = None
    """Called in a process of its own, once for each interval but the last one."""
    prepare: Callable[[], None] | None = field(default=None, compare=False)
    """Called before the trace begins: what is imported here is not imported by each of these processes."""
    writers: int = 2
    """Number of such processes, at most, at a time; with 1, they come in the order of the intervals."""
    container_pids: bool = False
    """Processes are also named with the pid inside their container."""
    python_only: bool = False
    """Stacks with Python functions have no native ones."""
    native_python: bool = False
    """Stacks with Python functions have the native ones of the interpreter itself, too."""
    kernel_addresses: bool = False
    """Addresses of the kernel's code and locks are told as they are."""
    budget: float = 0.0
    """Share of the traced threads' time that the trace may take; 0: any, and it is not measured."""
    gives_up: bool = field(default=False, compare=False)
    """Rights are given up as soon as they are not needed: for a process that ends with the trace."""


@dataclass(frozen=True)
class Outcome:
    """A trace that has ended."""

    profile: Profile
    details: Sequence[str] = field(default_factory=tuple)
    """Lines for -v: how it was taken."""
    status: int | None = None
    """Exit status of the command, -N by signal N; None where there was none, or the end of the trace ended it."""
    failed: int = 0
    """Intervals whose profiles were not written."""
    engine: str = ""
    """Name of the engine that took it, if somebody had to choose; else ""."""


class EngineUnavailable(StallscopeError):
    """Error of an engine that this machine, or this user, cannot use, or that cannot do what is asked for: another one
    may.

    ``needs``: a command with which an ordinary user could use it; "": there is none."""

    def __init__(self, cause: str, remedy: str = "", *, exit_code: int = 1, details: str = "", needs: str = "") -> None:
        super().__init__(cause, remedy, exit_code=exit_code, details=details)
        self.needs = needs


class Engine(Protocol):
    """One way to capture."""

    name: str
    """Name as in ``--engine``."""

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        """Names of measures that it never supports, and why not. `trace` reports what this machine lacks for others."""
        ...

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        """Error for what this machine or this user lacks for these measures, as far as a quick look shows; None:
        nothing."""
        ...

    def instead(self, request: Request, command: str) -> str | None:
        """Does what its options ask for instead of a trace for ``command``; returns what to tell the user. None: it
        traces."""
        return None

    def trace(self, request: Request) -> Outcome:
        """Traces until the trace ends. StallscopeError when the scope is not there, EngineUnavailable when the machine
        does not allow it: then nothing was started.

        Whatever happens, no probe stays, and a command that still runs gets SIGTERM.
        """
        ...
