"""The engines: the one list of them, with what they have of the options, and how they are made from these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, overload

from ..engines.protocol import Engine

LIMITED: Mapping[str, str] = {
    "-K": "kernel_only",
    "--call-graph": "call_graph",
    "--btf": "btf",
    "--budget": "budget",
    "--stap-module": "stap_module",
    "--stap-compile-only": "stap_compile_only",
    "--stap-build": "stap_build",
    "--stap-symbols": "stap_files",
}
"""Options that not every engine has, with their key among the values."""


class Kind(Protocol):
    """The class of an engine."""

    def __call__(self, *args: Any, **given: Any) -> Engine:
        """Makes the engine with the defaults of what is not given."""
        ...

    def of(self, given: Mapping[str, Any], /) -> Engine:
        """Makes the engine from the values of a command's options."""
        ...


class Entry(NamedTuple):
    """An engine."""

    kind: str | Kind
    """The class, or ``MODULE.CLASS`` from here: it is imported when it is needed."""
    options: tuple[str, ...] = ()
    """Options of `LIMITED` that the engine has."""
    in_turn: bool = True
    """``auto`` may choose it, in the order of the list. It never chooses one that stops processes."""
    whole_hosts: bool = True
    needs_root: bool = True

    def load(self) -> Kind:
        """Loads the engine's class."""
        if not isinstance(self.kind, str):
            return self.kind
        module, _, name = self.kind.rpartition(".")
        return cast(Kind, getattr(import_module(module, __package__), name))

    def lacking(self, given: Mapping[str, Any]) -> list[str]:
        """Options that were given and that the engine does not have."""
        return [option for option, key in LIMITED.items() if given.get(key) and option not in self.options]


ENGINES: dict[str, Entry] = {
    "libbpf": Entry("..engines.ebpf.engine.Ebpf", ("-K", "--btf", "--budget")),
    "bcc": Entry("..engines.bcc.engine.Bcc", ("-K",)),
    "stap": Entry(
        "..engines.stap.engine.Stap", ("-K", "--stap-module", "--stap-compile-only", "--stap-build", "--stap-symbols")
    ),
    "perf": Entry("..engines.perf.engine.Perf", ("-K", "--call-graph"), whole_hosts=False, needs_root=False),
    "eu-stack": Entry("..engines.eu_stack.engine.EuStack", in_turn=False, whole_hosts=False, needs_root=False),
}
"""Engines by name, as --engine has it."""


class OnDemand(Sequence[Engine]):
    """Engines that are made when they are asked for: most traces need the first one alone."""

    def __init__(self, names: Sequence[str], given: Mapping[str, Any]) -> None:
        self._make: list[Callable[[], Engine]] = [partial(made, name, given) for name in names]
        self._made: dict[int, Engine] = {}

    @overload
    def __getitem__(self, which: int) -> Engine: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[Engine]: ...
    def __getitem__(self, which: int | slice) -> Engine | Sequence[Engine]:
        if isinstance(which, slice):
            return [self[i] for i in range(*which.indices(len(self)))]
        if which not in self._made:
            self._made[which] = self._make[which]()
        return self._made[which]

    def __len__(self) -> int:
        return len(self._make)


def made(name: str, given: Mapping[str, Any]) -> Engine:
    """An engine from the values of the options. StallscopeError for one of them."""
    return ENGINES[name].load().of(given)


def all_engines(btf: Path | None = None) -> list[Engine]:
    """Every engine, for those who want to know what it can do."""
    return [entry.load()(**({"btf": btf} if "--btf" in entry.options else {})) for entry in ENGINES.values()]
