"""Names that Cython 0.29 and 3.0 have given to functions of published packages."""

from __future__ import annotations

import pytest
from stallscope.converters.names.cython import cython_name

BOOSTING = "7sklearn_8ensemble_23_hist_gradient_boosting"


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        (
            f"__pyx_pf_{BOOSTING}_9histogram_16HistogramBuilder_2compute_histograms_brute",
            "HistogramBuilder.compute_histograms_brute",
        ),
        (f"__pyx_pf_{BOOSTING}_9splitting_8Splitter_4find_node_split._omp_fn.0", "Splitter.find_node_split._omp_fn.0"),
        (f"__pyx_f_{BOOSTING}_9histogram__build_histogram", "histogram._build_histogram"),
        (f"__pyx_pw_{BOOSTING}_9splitting_8Splitter_1__init__", "Splitter.__init__"),
        (f"__pyx_pf_{BOOSTING}_9splitting_8Splitter___init__", "Splitter.__init__"),
        ("__pyx_pf_6mpi4py_3MPI_4Comm_142Allreduce", "Comm.Allreduce"),
        ("__pyx_pw_" + "1a_" * 10_000 + "3run", "a.run"),
        ("__pyx_pw_6mpi4py_3MPI_4Comm_143Allreduce", "Comm.Allreduce"),
        ("__pyx_f_6mpi4py_3MPI_10_p_msg_cco_for_allreduce", "_p_msg_cco.for_allreduce"),
        ("__pyx_f_6mpi4py_3MPI_message_basic", "MPI.message_basic"),
        ("__pyx_pw_5numpy_6random_10_generator_9Generator_23integers", "Generator.integers"),
        ("__pyx_f_5numpy_6random_17_bounded_integers__rand_int64", "_bounded_integers._rand_int64"),
        ("__pyx_f_5numpy_6random_6_pcg64_pcg64_uint64", "_pcg64.pcg64_uint64"),
    ],
)
def test_readable(name: str, readable: str) -> None:
    assert cython_name(name) == readable


@pytest.mark.parametrize(
    "name",
    [
        "",
        "main",
        "__pyx_memoryview_new",
        "__pyx_tp_dealloc_memoryview",
        "__pyx_pf_",
        "__pyx_pf_main",
        "__pyx_pw_4main",  # no function
        "__pyx_pw_4main_",
        "__pyx_pw_4main_2",
        "__pyx_f_4main_2",
        "__pyx_f_4main_2run",  # C's functions have no number
        "__pyx_pf_0_main",
        "__pyx_pf_999999999999_main",
        "my__pyx_pf_4main_run",
        "__pyx_pf_\u0663abc_run",
    ],
)
def test_others(name: str) -> None:
    assert cython_name(name) == ""
