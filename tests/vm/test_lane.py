"""The short set of the VM lane: what has to work on the kernels that users have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import lane
import plan
import pytest
from results import Result

Guest = Future[list[Result]]


@pytest.fixture(scope="module")
def guests(request: pytest.FixtureRequest, require: Callable[[bool, str], None]) -> Iterator[dict[str, Guest]]:
    """Guests by case. They begin in their order, with the cases that were selected, some at a time."""
    lacks = lane.missing()
    require(not lacks, lacks)
    chosen = {item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")}
    lane.RESULTS.mkdir(parents=True, exist_ok=True)
    found: dict[str, Guest] = {}
    with ThreadPoolExecutor(lane.AT_ONCE) as pool:
        for kernel, planned in plan.short_guests():
            if checks := [check for check in planned if f"{kernel} {check}" in chosen]:
                guest = pool.submit(lane.run_together, kernel, checks)
                found |= {f"{kernel} {check}": guest for check in checks}
        yield found
        pool.shutdown(cancel_futures=True)


CASES = [f"{kernel} {check}" for kernel, checks in plan.short_guests() for check in checks]


@pytest.mark.parametrize("case", CASES)
def test_kernel(guests: dict[str, Guest], case: str) -> None:
    (result,) = [each for each in guests[case].result() if f"{each.kernel} {each.check}" == case]
    print(result.figures)
    assert result.ok, f"{result.failure}: see {result.log}"
