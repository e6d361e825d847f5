"""Description of a module in its file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.engines.stap.module_file import ModuleFile, refusal, without_probe

HEAD = b"\x7fELF\0name=stallscope_fc_12345678\0vermagic=6.1\0"
ENTRY = b'process("/opt/lib x.so.1").function("take_item@src/take.c:14").call\0'
RETURN = ENTRY.replace(b".call", b".return")
WARNING = 'WARNING: probe process("/opt/lib x.so.1").function("take_item@src/take.c:14").call at inode-offset 5:(nil) '


def module(path: Path, content: bytes) -> ModuleFile:
    path.write_bytes(content)
    return ModuleFile.read(path)


def test_its_name_and_its_functions(tmp_path: Path) -> None:
    read = module(tmp_path / "x.ko", HEAD + ENTRY + RETURN + b'process("/opt/y").function("plain").call\0')
    assert read.name == "stallscope_fc_12345678"
    assert read.functions == {("/opt/lib x.so.1", "take_item"), ("/opt/y", "plain")}


@pytest.mark.parametrize("known", [b"\0name=stallscope_fn_12345678\0", b"\0\0stallscope_fn_12345678\0\0"])
def test_name_of_a_module_for_an_old_kernel_is_known(tmp_path: Path, known: bytes) -> None:
    """The name is in struct module alone before 4.13. Symbols, which come later, begin in the same way."""
    content = b"\x7fELF\0license=GPL" + known + b"vermagic\0stallscope_registers\0stallscope_old_rsp\0"
    assert module(tmp_path / "old.ko", content).name == "stallscope_fn_12345678"


def test_a_file_that_is_no_module(tmp_path: Path) -> None:
    for content in (b"", b"\x7fELF\0name=nvidia\0"):
        with pytest.raises(StallscopeError, match="no module of this tracer"):
            module(tmp_path / "x.ko", content)
    with pytest.raises(StallscopeError, match="cannot read"):
        ModuleFile.read(tmp_path / "nowhere.ko")


def test_functions_without_a_probe() -> None:
    """A call is timed by two probes."""
    said = f"{WARNING}registration error [man warning::pass5] (rc -5)\n"
    assert without_probe(said) == {("/opt/lib x.so.1", "take_item")}
    assert without_probe(said.replace(".call", ".return")) == {("/opt/lib x.so.1", "take_item")}
    assert not without_probe(f"{WARNING}something else\n")
    assert "(rc -5)" in str(refusal(said))


@pytest.mark.parametrize("hand_over", [lambda path: os.chown(path, 4242, 0), lambda path: path.chmod(0o666)])
def test_a_module_that_others_can_write_is_not_loaded(
    hand_over: Callable[[Path], None], tmp_path: Path, require: Callable[[bool, str], None]
) -> None:
    require(os.geteuid() == 0, "only root can give a file away")
    module = tmp_path / "x.ko"
    module.write_text("\0name=stallscope_fn_12345678\0")
    assert ModuleFile.read(module).name == "stallscope_fn_12345678"
    hand_over(module)
    with pytest.raises(StallscopeError, match="not root's alone"):
        ModuleFile.read(module)
    module.chmod(0o600)
    os.chown(module, 0, 0)
    os.chown(tmp_path, 4242, 0)
    with pytest.raises(StallscopeError, match="not root's alone"):
        ModuleFile.read(module)
