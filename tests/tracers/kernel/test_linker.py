from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from stallscope.tracers.kernel import linker
from stallscope.tracers.kernel.bpfobject import Object
from stallscope.tracers.kernel.libbpf import BpfError

PROBE = """
char LICENSE[] __attribute__((section("license"), used)) = "GPL";
{storage} const volatile int shared;
__attribute__((section("raw_tp/sys_enter"), used)) int {name}(void *context) {{ return shared; }}
"""


def probe(clang: str, folder: Path, name: str, *, defines: bool) -> Path:
    source, made = folder / f"{name}.c", folder / f"{name}.bpf.o"
    source.write_text(PROBE.format(name=name, storage="" if defines else "extern"))
    subprocess.run([clang, "-g", "-O2", "-target", "bpf", "-c", source, "-o", made], check=True)
    return made


def test_two_probes_become_one_object(clang: str, tmp_path: Path) -> None:
    parts = [probe(clang, tmp_path, "other", defines=False), probe(clang, tmp_path, "scope", defines=True)]
    output = tmp_path / "all.o"
    assert linker.main([str(output), *map(str, parts)]) == 0
    linked = Object(output)
    try:
        assert set(linked.programs) == {"other", "scope"}
        linked.set_variable("shared", 7)
    finally:
        linked.close()


def test_definitions_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []
    monkeypatch.setattr(linker, "link_objects", lambda output, inputs: seen.extend([output, *inputs]))
    assert linker.main(["out.o", "x/alpha.bpf.o", "x/scope.bpf.o", "x/zeta.bpf.o"]) == 0
    assert [path.name for path in seen] == ["out.o", "scope.bpf.o", "alpha.bpf.o", "zeta.bpf.o"]


@pytest.mark.parametrize("content", [b"", b"no object", None])
def test_no_object(content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.bpf.o"
    if content is not None:
        bad.write_bytes(content)
    assert linker.main([str(tmp_path / "out.o"), str(bad)]) == 1
    assert capsys.readouterr().err.startswith("link bad.bpf.o: ")
    with pytest.raises(BpfError):
        linker.link_objects(tmp_path / "out.o", [bad])


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BpfError, match="No such file or directory"):
        linker.link_objects(tmp_path / "missing" / "out.o", [])
