"""Names of places in the kernel, read from files like the kernel's. With real hits: tests/live/test_events.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.kernel import tracefs as file_system
from stallscope.tracers.kernel import tracepoints
from stallscope.tracers.kernel.tracepoints import Field, fields, has_kprobes, kernel_functions

FORMAT = """name: sched_process_exit
ID: 370
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t pid;	offset:24;	size:4;	signed:1;
	field:__data_loc char[] filename;	offset:28;	size:4;	signed:0;
	field:const struct request * rq;	offset:32;	size:8;	signed:0;

print fmt: "comm=%s pid=%d", REC->comm, REC->pid
"""


@pytest.fixture
def tracefs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(file_system, "folder", lambda: tmp_path)
    return tmp_path


def test_names(tracefs: Path) -> None:
    (tracefs / "available_events").write_text("sched:sched_switch\nirq:irq_handler_exit\n")
    assert tracepoints.tracepoints() == ["sched:sched_switch", "irq:irq_handler_exit"]


def test_without_the_list(tracefs: Path) -> None:
    with pytest.raises(StallscopeError, match="list of tracepoints cannot be read: No such file"):
        tracepoints.tracepoints()


def test_fields(tracefs: Path) -> None:
    folder = tracefs / "events/sched/sched_process_exit"
    folder.mkdir(parents=True)
    (folder / "format").write_text(FORMAT)
    assert fields("sched:sched_process_exit") == [
        Field("char[16]", "comm", 8, 16),
        Field("pid_t", "pid", 24, 4, is_signed=True),
        Field("__data_loc char[]", "filename", 28, 4),
        Field("const struct request *", "rq", 32, 8),
    ]
    assert fields("sched:nothing") == []


def test_functions_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    symbols = tmp_path / "kallsyms"
    symbols.write_bytes(b"ff01 T vfs_read\nff02 t helper\nff03 D table\nff05 t helper\n")
    monkeypatch.setattr(tracepoints, "_KALLSYMS", symbols)
    assert kernel_functions() == ["helper", "vfs_read"]
    monkeypatch.setattr(tracepoints, "_KPROBES", tmp_path / "kprobe")
    assert not has_kprobes()
    (tmp_path / "kprobe").mkdir()
    assert has_kprobes()
