from __future__ import annotations

from stallscope.tracers.probe_targets.steps import StepFunction, StepFunctions, title
from stallscope.tracers.probe_targets.wanted import Library

HERE = (1, 2)
ONE, TWO = Library("libtrain.so.1"), Library("/opt/train", (3, 4))
STEPS = StepFunctions.of([StepFunction(ONE, "step"), StepFunction(TWO, "epoch"), StepFunction(ONE, "_Zstep")])


def test_only_what_was_named() -> None:
    assert STEPS.libraries == (ONE, TWO)
    assert STEPS.wants("step", "/lib/libtrain.so.1", HERE)
    assert not STEPS.wants("step2", "/lib/libtrain.so.1", HERE)
    assert not STEPS.wants("epoch", "/lib/libtrain.so.1", HERE)
    assert STEPS.wants("epoch", "/another/name", (3, 4))
    assert not STEPS.wants("cudaMalloc", "/usr/lib/libcudart.so.12", HERE)


def test_only_files_that_were_named() -> None:
    assert STEPS.looks_into("/lib/libtrain.so.1.2", HERE, is_program=False)
    assert not STEPS.looks_into("/usr/bin/python3", HERE, is_program=True)
    assert not STEPS.looks_into("/usr/lib/libcudart.so.12", HERE, is_program=False)


def test_functions_whose_return_cannot_be_watched() -> None:
    assert not STEPS.wants("_Zstep", "/lib/libtrain.so.1", HERE)
    assert STEPS.is_unsafe("_Zstep", "/lib/libtrain.so.1", HERE)
    assert not STEPS.is_unsafe("step", "/lib/libtrain.so.1", HERE)


def test_names() -> None:
    assert STEPS.nearest(["stepp", "epochs", "other"]) == ["stepp", "epochs"]
    assert STEPS.option == "--step"
    assert title("/opt/lib/libtrain.so", "step") == "libtrain.so:step"
