"""Pseudonyms are the same for the same name."""

from __future__ import annotations

from stallscope.converters.anonymous.pseudonyms import Pseudonyms
from stallscope.converters.model import Frame, Module


def test_equal_names_have_equal_pseudonyms() -> None:
    names = Pseudonyms()
    assert [names.process(name) for name in ("zebra", "tiger", "zebra")] == ["process-1", "process-2", "process-1"]
    assert names.program("zebra") == "process-1"
    assert names.numbered("zebra (worker)-4711#2") == "process-1 (thread-1)-4711#2"
    assert names.numbered("[timer]") == "[timer]"
    assert names.numbered("python3-7") == "python3-7"


def test_a_name_that_is_public_and_private_is_private() -> None:
    names = Pseudonyms()
    public = Frame("step", "native", Module("/usr/lib/libc.so.6"))
    private = Frame("step", "native", Module("/opt/zebra"))
    names.learn(public)
    assert names.function("step") == "step"
    names.unlearn(private)
    assert names.function("step") == "function-1"
    assert names.frame(public).name == "step"
    assert names.frame(private).name == "function-1"


def test_texts_that_are_kept_only_if_they_are_known() -> None:
    names = Pseudonyms()
    assert [names.script(text) for text in ("-c", "-m torch.distributed.run", "-m zebra", "zebra.py")] == [
        "-c", "-m torch.distributed.run", "script-1", "script-2",
    ]  # fmt: skip
    assert names.number("0,1") == "0,1"
    assert names.number("GPU-zebra") == "value-1"
    assert names.command("TUNSETQUEUE /dev/net/tun") == "TUNSETQUEUE /dev/net/tun"
    assert names.command("0x1234 /dev/zebra") == "0x1234 device-1"
    assert names.lock("mm_struct.mmap_lock #1", of_kernel=True) == "mm_struct.mmap_lock #1"
    assert names.lock("in zebra at 0xffff888000001000", of_kernel=True) == "lock-1"
    assert names.error("EBUSY") == "EBUSY"
