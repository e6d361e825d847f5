from __future__ import annotations

import pytest
from stallscope.tracers.probe_targets import cuda
from stallscope.tracers.probe_targets.copies import COPY, DIRECTIONS, cookie, is_async


def fields(name: str) -> dict[str, int]:
    """Fields of a cookie, by the macros of bpf/include/call_cookie.h."""
    found = cookie(name)
    assert found & COPY
    return {
        "size": found >> 34 & 15,
        "times": found >> 38 & 15,
        "kind": found >> 42 & 15,
        "form": found >> 46 & 3,
        "narrow": found >> 48 & 1,
        "direction": (found >> 49 & 7) - 1,
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cudaMemcpy", {"size": 3, "kind": 4}),
        ("cudaMemcpyAsync_ptsz", {"size": 3, "kind": 4}),
        ("cudaMemcpy2D", {"size": 5, "times": 6, "kind": 7}),
        ("cudaMemcpy3DAsync", {"form": 1}),
        ("cuMemcpyHtoD", {"size": 3, "narrow": 1, "direction": 1}),
        ("cuMemcpyHtoD_v2_ptds", {"size": 3, "direction": 1}),
        ("cuMemcpyDtoHAsync_v2_ptsz", {"size": 3, "direction": 2}),
        ("cuMemcpy", {"size": 3, "direction": 4}),
        ("cuMemcpyPeerAsync", {"size": 5, "direction": 3}),
        ("cuMemcpy2D_v2", {"form": 2}),
        ("cuMemcpy3DAsync_v2", {"form": 3}),
        ("cuMemcpy2D", {}),
    ],
)
def test_where_size_and_direction_are(name: str, expected: dict[str, int]) -> None:
    nothing = {"size": 0, "times": 0, "kind": 0, "form": 0, "narrow": 0, "direction": -1}
    assert fields(name) == nothing | expected


def test_other_functions_copy_nothing() -> None:
    assert cookie("cudaMalloc") == cookie("cudaMemset") == cookie("memcpy") == 0


def test_every_copy_of_the_table_has_a_form() -> None:
    copies = [name for name, kind in cuda._kinds().items() if kind == "copy"]
    assert len(copies) > 20
    for name in copies:
        found = fields(f"{name}_v2" if name.startswith("cuM") else name)
        assert found["size"] or found["form"], name


def test_names_of_directions_are_those_of_the_probes() -> None:
    assert DIRECTIONS.index("host to device") == 1  # cudaMemcpyHostToDevice of driver_types.h
    assert DIRECTIONS.index("by address") == 4  # cudaMemcpyDefault


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("cudaMemcpyAsync", True), ("cuMemcpyHtoDAsync_v2_ptsz", True), ("cudaMemcpy", False), ("cuMemcpyHtoD_v2", False)],
)
def test_asynchronous_functions(name: str, wanted: bool) -> None:
    assert is_async(name) == wanted
