from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest
from stallscope.tracers.engines.ebpf.measures import totals as module
from stallscope.tracers.engines.ebpf.measures.totals import Moved, Totals, fold_all
from stallscope.tracers.kernel.records import ORIGIN, OTHER_STACKS, WAIT_SUM, Origin, WaitSum

BIG = (1 << 64) - 1


def waits() -> Totals:
    one = (np.add, np.minimum, np.maximum)
    return Totals((np.add, *one, *one), weights=(1, 4))


def add(totals: Totals, rows: list[tuple[Origin, WaitSum]]) -> None:
    totals.add(b"".join(ORIGIN.pack(*key) for key, _ in rows), b"".join(WAIT_SUM.pack(*value) for _, value in rows))


def taken(totals: Totals) -> dict[Origin, WaitSum]:
    rows = [(origin, WaitSum(*values)) for origin, values in totals.take()]
    assert len({origin for origin, _ in rows}) == len(rows)
    assert len(totals) == 0
    return dict(rows)


def some(seed: int, count: int, *, threads: int = 5, stacks: int = 40) -> list[tuple[Origin, WaitSum]]:
    chance = random.Random(seed)
    rows = []
    for _ in range(count):
        stack = chance.choice((0, BIG - chance.randrange(stacks)))
        origin = Origin(stack, chance.randrange(3), 0, chance.randrange(threads), 7, chance.randrange(2), 1)
        blocked, runnable = chance.randrange(1, 1000), chance.randrange(1000)
        rows.append((origin, WaitSum(1, blocked, blocked, blocked, runnable, runnable, runnable)))
    return rows


def expected(rows: list[tuple[Origin, WaitSum]]) -> dict[Origin, WaitSum]:
    sums: dict[Origin, WaitSum] = {}
    for origin, total in rows:
        sums[origin] = sums[origin] + total if origin in sums else total
    return sums


def test_nothing() -> None:
    totals = waits()
    add(totals, [])
    totals.fold(0)
    assert taken(totals) == {}


@pytest.mark.parametrize("patience", [1, 100, 1 << 14])
@pytest.mark.parametrize("collide", [False, True])
def test_sums_by_origin(patience: int, collide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", patience)
    if collide:  # all origins have the same hash
        monkeypatch.setattr(module, "_MULTIPLIERS", np.zeros(5, np.uint64))
    totals, rows = waits(), some(1, 900)
    for i in range(0, len(rows), 90):
        add(totals, rows[i : i + 90])
    assert taken(totals) == expected(rows)


def test_the_rarest_are_put_together_and_their_time_stays() -> None:
    totals, rows = waits(), some(2, 500)
    add(totals, rows)
    sums = expected(rows)
    totals.fold(20)
    add(totals, rows[:100])  # meanwhile more came
    totals.fold(20)
    found = taken(totals)
    assert 10 <= sum(origin.ustack != OTHER_STACKS for origin in found) <= 20
    other = [origin for origin in found if origin.ustack == OTHER_STACKS]
    assert {(origin.kstack, origin.object) for origin in other} == {(0, 0)}
    whole: defaultdict[tuple[int, ...], WaitSum | None] = defaultdict(lambda: None)
    split: defaultdict[tuple[int, ...], WaitSum | None] = defaultdict(lambda: None)
    for into, source in ((whole, expected([*rows, *rows[:100]])), (split, found)):
        for origin, total in source.items():
            before = into[origin[3:]]
            into[origin[3:]] = total if before is None else before + total
    assert split == whole
    kept = [sums[origin].blocked for origin in found if origin in sums]
    assert np.mean(kept) > np.mean([total.blocked for total in sums.values()])


def test_rows_that_weigh_the_same_are_folded_too() -> None:
    totals = Totals((np.add, np.add), weights=(0,))
    keys = b"".join(ORIGIN.pack(number, 0, 0, 8, 7, 0, 1) for number in range(1, 201, 2))
    totals.add(keys, np.ones(200, np.uint64).tobytes())
    totals.fold(10)
    found = dict(totals.take())
    assert len(found) == 11
    assert found[Origin(OTHER_STACKS, 0, 0, 8, 7, 0, 1)] == [90, 90]


def test_stacks_that_rows_refer_to() -> None:
    totals = waits()
    add(totals, [(Origin(5, 6, 0, 8, 7, 0, 1), WaitSum(1, 9, 9, 9, 0, 0, 0))])
    assert set(totals.stacks().tolist()) == {5, 6}
    assert totals.bytes == 96


def test_several_measures_share_the_room() -> None:
    one, two = waits(), waits()
    add(one, some(3, 400, threads=400, stacks=400))
    add(two, some(4, 100, threads=400, stacks=400))
    before = len(one), len(two)
    fold_all([one, two], 1000)
    assert (len(one), len(two)) == before
    fold_all([one, two], 50)
    kept = [sum(origin.ustack != OTHER_STACKS for origin in taken(each)) for each in (one, two)]
    assert sum(kept) <= 50
    assert kept[0] > 2 * kept[1] > 0


# Rows that get other ids, when the accounts of their threads are added up.


def with_maximum(*rows: tuple[Origin, int, int]) -> Totals:
    """Totals of origins with a sum and a maximum."""
    made = Totals((np.add, np.maximum), (0,))
    keys = b"".join(ORIGIN.pack(*origin) for origin, _, _ in rows)
    made.add(keys, np.array([values for _, *values in rows], np.uint64).tobytes())
    return made


def test_rows_of_lives_are_put_together() -> None:
    made = with_maximum(
        (Origin(5, 6, 0, 11, 10, 1, 3), 100, 10),
        (Origin(5, 6, 0, 21, 20, 2, 3), 7, 30),
        (Origin(5, 6, 0, 21, 20, 2, 4), 8, 8),
        (Origin(7, 6, 0, 31, 30, 3, 3), 9, 9),
        (Origin(5, 6, 0, 41, 40, 4, 3), 1, 1),
    )
    ids = 99 << 32
    moves = {1: (ids, 1 << 31, False), 2: (ids, 1 << 31, False), 3: (ids, 1 << 31, True), 8: (ids, 77, False)}
    made.move(Moved.of(moves))
    assert sorted(made.take()) == [
        (Origin(OTHER_STACKS, 0, 0, 0, 99, 1 << 31, 3), [9, 9]),
        (Origin(5, 6, 0, 0, 99, 1 << 31, 3), [107, 30]),
        (Origin(5, 6, 0, 0, 99, 1 << 31, 4), [8, 8]),
        (Origin(5, 6, 0, 41, 40, 4, 3), [1, 1]),
    ]


def test_nothing_to_move() -> None:
    made = with_maximum((Origin(5, 6, 0, 11, 10, 1, 3), 100, 10))
    made.move(Moved.of({}))
    made.move(Moved.of({2: (0, 3, False)}))
    assert list(made.take()) == [(Origin(5, 6, 0, 11, 10, 1, 3), [100, 10])]
    made.move(Moved.of({2: (0, 3, False)}))
    assert len(made) == 0


def test_how_many_rows_folding_leaves() -> None:
    totals = waits()
    add(totals, [])
    assert totals.folded() == 0
    add(totals, some(5, 3000))
    told, rows = totals.folded(), len(totals)
    totals.fold(0)
    assert told == len(totals) == 10 < rows  # 5 threads, each with 2 lives
