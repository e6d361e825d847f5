"""``--engine auto``: the first engine in a list that this machine, and this user, can use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...converters.base.errors import StallscopeError
from ..measures.commands import WALL
from ..measures.protocol import Measure
from .protocol import Engine, EngineUnavailable, Outcome, Request


@dataclass(frozen=True)
class Auto(Engine):
    """Tries engines in turn. The profile says which one was used if it is not the first, and why."""

    engines: Sequence[Engine]
    never: Sequence[Engine] = ()
    """Engines that it does not choose, but names where none of the others can be used."""
    name: str = "auto"

    def refusals(self, measures: Sequence[Measure]) -> Mapping[str, str]:
        """Measures that none of the engines takes together with the others: what the first one says."""
        return {} if any(True for _ in self._able(measures)) else self.engines[0].refusals(measures)

    def missing(self, measures: Sequence[Measure]) -> StallscopeError | None:
        """Error for what the first engine lacks, if all of them lack something."""
        found = [engine.missing(measures) for engine in self._able(measures)]
        return None if None in found else found[0]

    def trace(self, request: Request) -> Outcome:
        """Traces with the first engine that is able to. EngineUnavailable of the first if none is; its remedy names
        others."""
        refused: list[tuple[str, EngineUnavailable]] = []
        for engine in self._able(request.measures):
            try:
                outcome = engine.trace(request)
            except EngineUnavailable as error:
                refused.append((engine.name, error))
                continue
            return _told(outcome, engine.name, refused)
        raise self._naming_others(refused, request)

    def _naming_others(self, refused: Sequence[tuple[str, EngineUnavailable]], request: Request) -> EngineUnavailable:
        """The first error, and what a user who is not root can do."""
        error = refused[0][1]
        if request.scope.everything:
            return error
        ways = [f"{other.needs} (for {name})" for name, other in refused[1:] if other.needs]
        for engine in self.never:
            if engine.missing(request.measures) is None:
                if not engine.refusals(request.measures):
                    ways.append(f"--engine {engine.name}")
                elif not engine.refusals(WALL):
                    ways.append(f"trace-wall --engine {engine.name}")
        own = f"for your own processes: {', or '.join(ways)}" if ways else ""
        return EngineUnavailable(error.cause, "; ".join(filter(None, (error.remedy, own))))

    def _able(self, measures: Sequence[Measure]) -> Iterator[Engine]:
        return (engine for engine in self.engines if not engine.refusals(measures))


def _told(outcome: Outcome, name: str, refused: Sequence[tuple[str, EngineUnavailable]]) -> Outcome:
    """Adds the engine's name: to the details, and to the summary if there was a reason not to take an earlier one."""
    if refused:
        why = "; ".join(f"{other}: {error.cause}" for other, error in refused)
        outcome.profile.comments.insert(0, f"taken with {name}, because other engines cannot be used ({why})")
    return replace(outcome, details=[f"engine: {name}", *outcome.details], engine=name)
