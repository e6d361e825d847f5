from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from stallscope.tracers.probe_targets.targets import Target, Targets

HERE = (1, 2)
LIBRARY = "/opt/libtorch_cpu.so"
TOPK = "_ZN2at6native4topkERKNS_6TensorEl"
"""Mangled name of at::native::topk(at::Tensor const&, long)."""
COLD = f"{TOPK}.cold"
RUST = "_ZN4core3fmt5write17h0123456789abcdefE"


def targets(*texts: str, returns: bool = False) -> Targets:
    found = Targets.of(map(Target.parse, texts), returns=returns)
    found.learn(LIBRARY, HERE, lambda: [TOPK, COLD, RUST, "getenv", "setenv"])
    return found


@pytest.mark.parametrize(
    ("names", "name", "is_meant"),
    [
        ("getenv", "getenv", True),
        ("getenv", "secure_getenv", False),
        ("getenv", "getenv2", False),
        ("get*", "getenv", True),
        ("[gs]etenv", "setenv", True),
        ("/^get/", "getenv", True),
        ("/^env/", "getenv", False),
        ("re:env$", "getenv", True),
        ("at::native::topk", TOPK, True),
        ("at::native::topk*", TOPK, True),
        ("at::native::topk(at::Tensor const&, long)", TOPK, True),
        ("at::native::top", TOPK, False),
        ("native::topk", TOPK, False),
        ("re:native::topk", TOPK, True),
        (TOPK, TOPK, True),
        ("core::fmt::write", RUST, True),
    ],
)
def test_names(names: str, name: str, is_meant: bool) -> None:
    assert targets(f"libtorch_cpu.so:{names}", returns=True).wants(name, LIBRARY, HERE) is is_meant


def test_a_namespace_that_is_called_re() -> None:
    target = Target.parse("libx.so:re::f*")
    assert target.matches(["re::first"])
    assert not target.matches([":f"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("getenv", "is not FILE:FUNCTION"),
        ("libc.so.6:", "is not FILE:FUNCTION"),
        (":getenv", "is not FILE:FUNCTION"),
        ("at::native::topk", "is not FILE:FUNCTION"),
        ("", "is not FILE:FUNCTION"),
        ("libc.so.6:re:(", "has no regular expression"),
        ("libc.so.6:/[/", "has no regular expression"),
    ],
)
def test_what_is_no_target(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Target.parse(text)


def test_a_path_without_a_file() -> None:
    with pytest.raises(OSError, match="No such file"):
        Target.parse("/no/such/lib.so:f")


def test_each_target_has_its_own_file() -> None:
    found = targets("libtorch_cpu.so:getenv", "libother.so:setenv")
    assert found.wants("getenv", LIBRARY, HERE)
    assert not found.wants("setenv", LIBRARY, HERE)
    assert found.wants("setenv", "/usr/lib/libother.so.1", HERE)
    assert found.looks_into("/usr/lib/libother.so", HERE, is_program=False)
    assert not found.looks_into("/usr/lib/libcudart.so.12", HERE, is_program=False)
    assert not found.looks_into("/usr/bin/train", HERE, is_program=True)


def test_a_program_by_its_name() -> None:
    """The file that the shell would run, also under the name that its link leads to."""
    shell = shutil.which("sh")
    assert shell
    status = os.stat(shell)
    assert Target.parse("sh:main").is_file("/usr/bin/other", (status.st_dev, status.st_ino))
    assert Target.parse("sh:main").is_file("/container/sh", HERE)


@pytest.mark.parametrize(
    ("path", "is_it"),
    [
        ("/usr/bin/python3", True),
        ("/usr/bin/python3.11", True),
        ("/usr/bin/python3-config", False),
        ("/usr/bin/xpython3", False),
        ("/usr/lib/libpython3.11.so.1.0", False),
    ],
)
def test_a_program_with_its_version(path: str, is_it: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert Target.parse("python3:Py*").is_file(path, HERE) is is_it


def test_a_script_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [library.identity for library in Target.parse("script:main").libraries] == [None]


def test_functions_that_exceptions_can_leave() -> None:
    found = targets("libtorch_cpu.so:*")
    assert found.is_unsafe(TOPK, LIBRARY, HERE)
    assert not found.wants(TOPK, LIBRARY, HERE)
    assert targets("libtorch_cpu.so:*", returns=True).wants(TOPK, LIBRARY, HERE)


@pytest.mark.parametrize("name", [COLD, "setjmp", "vfork", "__cxa_throw", "_ZSt20__throw_length_errorPKc", "f.part.0"])
def test_functions_that_never_have_a_probe(name: str) -> None:
    """A part that is jumped to has no return address where the kernel puts its own."""
    found = targets("libtorch_cpu.so:*", returns=True)
    assert found.is_unsafe(name, LIBRARY, HERE)
    assert not found.wants(name, LIBRARY, HERE)


def test_readable_and_nearest_names() -> None:
    found = targets("libtorch_cpu.so:at::native::topkk", returns=True)
    assert found.readable(TOPK) == "at::native::topk(at::Tensor const&, long)"
    assert found.readable("getenv") == "getenv"
    assert found.nearest([TOPK, "getenv"]) == ["at::native::topk"]
