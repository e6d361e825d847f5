from __future__ import annotations

import pytest
from stallscope.converters.facts.ownership import is_own, is_own_file
from stallscope.converters.model import Frame, Module


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/usr/bin/shop", True),
        ("/usr/lib/postgresql/15/bin/postgres", True),
        ("/home/me/shop", True),
        ("/home/me/libstore.so", True),
        ("/opt/shop/libstore.so.1.2", True),
        ("/usr/lib/x86_64-linux-gnu/libpq.so.5", False),
        ("/lib64/libz.so.1", False),
        ("/opt/cuda-12/lib64/libcudart.so.12", False),
        ("/data/cuda/targets/x86_64-linux/lib/libcublas.so.12", False),
        ("/srv/cuda-train/libkernels.so", True),
        ("/srv/train/cuda/libkernels.so", True),
        ("/home/me/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", False),
        ("/root/.pyenv/versions/3.11.7/lib/libpython3.11.so.1.0", False),
        ("/usr/bin/python3.11", False),
        ("/usr/bin/node", False),
        ("/usr/lib/jvm/java-17/bin/java", False),
        ("/home/me/nodes", True),
        ("[vdso]", False),
        ("", False),
    ],
)
def test_files(path: str, own: bool) -> None:
    assert is_own_file(path) == own
    assert is_own(Frame("f", "native", Module(path))) == own


@pytest.mark.parametrize(
    ("frame", "own"),
    [
        (Frame("train", "python", file="/home/me/train.py"), True),
        (Frame("train", "python"), True),
        (Frame("read", "python", file="/usr/lib/python3.11/socket.py"), False),
        (Frame("step", "python", file="/home/me/venv/lib/python3.11/site-packages/torch/optim/sgd.py"), False),
        (Frame("_find", "python", file="<frozen importlib._bootstrap>"), False),
        (Frame("py::train:/home/me/train.py", "jit"), True),
        (Frame("py::read:/usr/lib/python3.12/socket.py", "jit"), False),
        (Frame("JS:^loadSession /srv/app.js:2:21", "jit"), True),
        (Frame("JS:^openSync node:fs:570:18", "jit"), False),
        (Frame("JS:~next /srv/node_modules/express/lib/router/route.js:98:14", "jit"), False),
        (Frame("Builtin:ArrayMap", "jit"), False),
        (Frame("Lorg/shop/Cart;::total", "jit"), True),
        (Frame("Ljava/util/HashMap;::get", "jit"), False),
        (Frame("WorkerThread::run", "jit"), True),
        (Frame("Interpreter", "jit"), False),
        (Frame("[anon]", "native"), False),
    ],
)
def test_scripts_and_compiled_code(frame: Frame, own: bool) -> None:
    assert is_own(frame) == own
