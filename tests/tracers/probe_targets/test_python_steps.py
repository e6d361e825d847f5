from __future__ import annotations

import pytest
from stallscope.tracers.probe_targets.python_steps import PythonFunction, python_function


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("train.py", "train.py"),
        ("./src/train.py", "./src/train.py"),
        ("torch.utils.data", "torch/utils/data.py"),
        ("libtrain.so", None),
        ("libtrain.so.1", None),
        ("/opt/bin/train", None),
        ("train", None),
    ],
)
def test_what_is_a_function_of_python(path: str, file: str | None) -> None:
    assert python_function(path, "step") == (PythonFunction(file, "step") if file else None)


@pytest.mark.parametrize(
    ("given", "path", "is_in"),
    [
        ("train.py", "train.py", True),
        ("train.py", "/home/user/train.py", True),
        ("./train.py", "train.py", True),
        ("/home/user/train.py", "train.py", True),
        ("src/train.py", "/home/user/src/train.py", True),
        ("src/train.py", "/home/user/lib/train.py", False),
        ("train.py", "/home/user/pretrain.py", False),
        ("/home/user/train.py", "/home/other/train.py", False),
        ("train.py", "", False),
    ],
)
def test_files(given: str, path: str, *, is_in: bool) -> None:
    assert PythonFunction(given, "step").is_in(path) == is_in


@pytest.mark.parametrize(
    ("given", "name", "is_qualified", "is_named"),
    [
        ("step", "step", True, True),
        ("step", "Model.step", True, True),
        ("Model.step", "Model.step", True, True),
        ("Model.step", "Other.step", True, False),
        ("step", "Model.pre_step", True, False),
        ("Model.step", "step", False, True),
        ("Model.step", "pre_step", False, False),
    ],
)
def test_names(given: str, name: str, *, is_qualified: bool, is_named: bool) -> None:
    assert PythonFunction("train.py", given).is_named(name, is_qualified=is_qualified) == is_named
