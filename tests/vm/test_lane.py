"""The short set of the VM lane: what has to work on the kernels that users have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import lane
import plan
import pytest
from results import Result


@pytest.fixture(scope="module")
def guests(request: pytest.FixtureRequest, require: Callable[[bool, str], None]) -> Iterator[dict[str, Future[Result]]]:
    """The cases that were selected, begun in their order: some guests run side by side."""
    lacks = lane.missing()
    require(not lacks, lacks)
    chosen = [item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")]
    cases = [case for case in chosen if case in CASES]
    lane.RESULTS.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(lane.AT_ONCE) as pool:
        yield {case: pool.submit(lane.run_case, *case.split()) for case in cases}
        pool.shutdown(cancel_futures=True)


CASES = [f"{kernel} {check}" for kernel, check in plan.short_set()]


@pytest.mark.parametrize("case", CASES)
def test_kernel(guests: dict[str, Future[Result]], case: str) -> None:
    result = guests[case].result()
    print(result.figures)
    assert result.ok, f"{result.failure}: see {result.log}"
