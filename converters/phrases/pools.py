"""Words for pools of threads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from ..base.units import count
from ..facts import thresholds
from ..facts.pools import Pool

_Text = tuple[bool, str]
"""Text of a pool without its number, and whether the word "threads" is not in it."""


def pools(found: Sequence[Pool], beside: bool = False) -> str:
    """``They are in pools: 8 threads made in start_readers → start_pool, 8 fed in serve → put.``; "" for none.
    ``beside``: other threads were told before. Unescaped (hostile)."""
    if not found:
        return ""
    most = thresholds.POOLS_NAMED
    told = [
        f"{count(number)}{' threads' if is_bare and not i else ''} {text}"
        for i, ((is_bare, text), number) in enumerate(_told(found).items())
    ]
    others = len(told) - most
    more = [f"{count(others)} more pool{'s' if others > 1 else ''}"] if others > 0 else []
    return f"{'Others' if beside else 'They'} are in pools: {', '.join([*told[:most], *more])}."


def made_in(frames: Sequence[str]) -> str:
    """``in next_epoch → start_thread``; "" if the place is not known."""
    return f" in {' → '.join(frames)}" if frames else ""


def _told(found: Sequence[Pool]) -> dict[_Text, int]:
    """Number of threads by text. Pools of one place are told apart by what else is known of them; those of which all
    is told alike are added up."""
    alike: dict[_Text, list[Pool]] = defaultdict(list)
    for pool in found:
        alike[_by_place(pool)].append(pool)
    told: Counter[_Text] = Counter()
    for pool in found:
        others = alike[_by_place(pool)]
        apart = len(set(map(_by_all, others)))
        tell = next(tell for tell in _APART if len(set(map(tell, others))) == apart)
        told[tell(pool)] += pool.threads
    return told


def _by_place(pool: Pool) -> _Text:
    if pool.made_in:
        return True, f"made{made_in(pool.made_in)}"
    if pool.fed_in:
        return True, f"fed{made_in(pool.fed_in)}"
    return False, f"{pool.thread} threads{_runs(pool)}"


def _by_name(pool: Pool) -> _Text:
    is_bare, text = _by_place(pool)
    return False, f"{pool.thread} threads {text}" if is_bare else text


def _by_function(pool: Pool) -> _Text:
    is_bare, text = _by_place(pool)
    return is_bare, text + _runs(pool) if is_bare else text


def _by_feeder(pool: Pool) -> _Text:
    is_bare, text = _by_place(pool)
    return is_bare, text + _feeder(pool)


def _by_all(pool: Pool) -> _Text:
    is_bare, text = _by_name(pool)
    return is_bare, text + (_runs(pool) if pool.made_in or pool.fed_in else "") + _feeder(pool)


_APART = (_by_place, _by_name, _by_function, _by_feeder, _by_all)
"""Ways to tell pools apart, the shortest ones first."""


def _runs(pool: Pool) -> str:
    return f" that run {pool.runs}" if pool.runs else ""


def _feeder(pool: Pool) -> str:
    return f" and fed{made_in(pool.fed_in)}" if pool.made_in and pool.fed_in else ""
