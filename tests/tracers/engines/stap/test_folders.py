"""Build folders of kernels, as SystemTap needs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stallscope.tracers.engines.protocol import EngineUnavailable
from stallscope.tracers.engines.stap import folders
from stallscope.tracers.engines.stap.folders import own_folder, take_place, with_symbols, with_tracepoints

SYMBOLS = b"ffffffff81000000 T _stext\n" * 200


def test_a_build_folder_with_symbols(build: Path) -> None:
    (build / "System.map").write_bytes(SYMBOLS)
    assert with_symbols(build, is_other=True) == build


def test_symbols_of_the_running_kernel(build: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(folders, "_running_symbols", lambda: SYMBOLS)
    (build / "System.map").write_text("a stub")
    made = with_symbols(build, is_other=False)
    assert (made / "System.map").read_bytes() == SYMBOLS
    assert (made / "Makefile").read_bytes() == (build / "Makefile").read_bytes()
    assert (build / "System.map").read_text() == "a stub"
    assert with_symbols(build, is_other=False) == made


def test_symbols_are_the_same_after_each_boot() -> None:
    fixed = b"0000000000000000 A fixed_percpu_data\n"
    once, again = (
        fixed + b"".join(b"%016x T %s\n" % (0xFFFFFFFF00000000 + at + move, name) for at, name in names)
        for names in [((0x81000000, b"_text"), (0x81000040, b"do_exit"), (0x82000000, b"data"))]
        for move in (0x7E00000, 0)
    )
    linked = folders._as_linked(once.splitlines(keepends=True))
    assert linked == again == folders._as_linked(again.splitlines(keepends=True))
    assert folders._as_linked([fixed, b"0000000000000000 T _text\n"]) == b""


def test_only_some_folders_with_symbols_are_kept(build: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    (build / "System.map").write_text("a stub")
    made = []
    for number in range(6):
        monkeypatch.setattr(folders, "_running_symbols", lambda number=number: SYMBOLS + b"%d" % number)
        made.append(with_symbols(build, is_other=False))
        os.utime(made[-1], (number, number))
    assert [folder.exists() for folder in made] == [False, False, True, True, True, True]


def test_no_symbols_of_another_kernel(build: Path) -> None:
    release = build / "include/generated/utsrelease.h"
    release.parent.mkdir(parents=True)
    release.write_text('#define UTS_RELEASE "9.9.9-test"\n')
    with pytest.raises(EngineUnavailable, match=r"the symbols of kernel 9\.9\.9-test are not known") as error:
        with_symbols(build, is_other=True)
    assert "/boot/System.map-9.9.9-test" in error.value.remedy


@pytest.fixture
def source(build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernel's own headers, in a folder beside the build folder, as Debian has them."""
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "common"
    names = ("include/trace/events/sched.h", "include/trace/events/kvm.h", "include/linux/sched.h", "include/ras/ras.h")
    for name in (*names, "arch/x86/include/asm/trace/irq_vectors.h", "arch/x86/include/asm/trace/fpu.h"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (build / "Makefile").write_text(f"KBUILD_OUTPUT={build}\ninclude {folder}/Makefile\n")
    (build / "Module.symvers").write_text("0x1 a vmlinux\n")
    return folder


def test_headers_of_tracepoints_beside_the_build_folder_are_found(build: Path, source: Path) -> None:
    made = with_tracepoints(build)
    found = {str(each.relative_to(made / "source")) for each in (made / "source").rglob("*.h")}
    assert found == {"include/trace/events/sched.h", "arch/x86/include/asm/trace/irq_vectors.h"}
    assert (made / "source/include/linux/sched.h").exists()
    assert with_tracepoints(build) == made


def test_a_makefile_that_names_its_folder_names_the_new_one(build: Path, source: Path) -> None:
    made = with_tracepoints(build)
    assert (made / "Makefile").read_text() == f"KBUILD_OUTPUT={made}\ninclude {source}/Makefile\n"


def test_symbols_of_the_kernels_modules_are_not_written_through_a_link(build: Path, source: Path) -> None:
    (with_tracepoints(build) / "Module.symvers").write_text("")
    assert (build / "Module.symvers").read_text() == "0x1 a vmlinux\n"


def test_newer_headers_have_a_folder_of_their_own(build: Path, source: Path) -> None:
    before = with_tracepoints(build)
    (build / "Module.symvers").write_text("0x2 a vmlinux\n0x3 b vmlinux\n")
    after = with_tracepoints(build)
    assert after != before
    assert (after / "Module.symvers").read_text() == "0x2 a vmlinux\n0x3 b vmlinux\n"


def test_what_a_build_folder_gets_later_is_seen(build: Path, source: Path) -> None:
    made = with_tracepoints(build)
    (build / "System.map").write_bytes(SYMBOLS)
    assert with_tracepoints(build) == made
    assert (made / "System.map").read_bytes() == SYMBOLS


def test_a_link_named_source_leads_to_the_headers(build: Path, source: Path) -> None:
    (build / "Makefile").write_text("")
    (build / "source").symlink_to(source)
    assert (with_tracepoints(build) / "source/include/linux/sched.h").exists()


def test_a_folder_with_all_headers_stays(build: Path) -> None:
    assert with_tracepoints(build) == build


def test_two_traces_make_the_same_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    place = tmp_path / "place"
    assert take_place(tmp_path / "one", place) == place
    assert take_place(tmp_path / "two", place) == place
    assert (place / "file").read_text() == "one"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["place"]
    with pytest.raises(FileNotFoundError):
        take_place(place, tmp_path / "none" / "place")


def test_each_folder_on_the_way_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user who can replace one of them can replace a module."""
    above = tmp_path / "above"
    above.mkdir()
    monkeypatch.setenv("STALLSCOPE_CACHE", str(above / "cache"))
    assert own_folder() == above / "cache" / "stap"
    above.chmod(0o777)
    with pytest.raises(EngineUnavailable, match="above belongs to others, or others may write to it"):
        own_folder()
    above.chmod(0o700)
    (above / "cache" / "stap").chmod(0o770)
    os.chown(above / "cache" / "stap", -1, os.getgid() or 65534)
    with pytest.raises(EngineUnavailable, match="stap belongs to others"):
        own_folder()
