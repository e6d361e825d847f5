"""SystemTap's runtime, mended for kernels that it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest
from stallscope.tracers.engines.stap import runtime
from stallscope.tracers.engines.stap.runtime import mended

TASK_WORK = "typedef typeof(&task_work_cancel) x;\n"
TRANSPORT = 'kallsyms_uprobe_unregister = (void*) kallsyms_lookup_name ("uprobe_unregister");\n'
UNREGISTER = "extern void uprobe_unregister_nosync(struct uprobe *, struct uprobe_consumer *);"
UPROBES = """\
typedef typeof(&uprobe_unregister) uprobe_unregister_fn;
struct stapiu_instance {
};
    ret = uprobe_register (inst->inode, c->offset, &inst->kconsumer);
  (void) uprobe_unregister (inst->inode, c->offset, &inst->kconsumer);
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The runtime that is installed."""
    monkeypatch.setenv("STALLSCOPE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "runtime"
    for name, text in (
        ("stp_task_work.c", TASK_WORK),
        ("linux/addr-map.c", ""),
        ("transport/transport.c", TRANSPORT),
        ("linux/uprobes-inode.c", UPROBES),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setattr(runtime, "_RUNTIMES", (str(folder),))
    return folder


@pytest.fixture
def headers(build: Path) -> Path:
    """The kernel's, in which nothing is new."""
    folder = build / "include" / "linux"
    folder.mkdir(parents=True)
    (folder / "task_work.h").write_text("bool task_work_cancel(struct task_struct *, struct callback_head *);")
    (folder / "uprobes.h").write_text("extern void uprobe_unregister(struct inode *, loff_t);")
    return folder


def test_the_runtime_of_a_kernel_that_it_knows_is_its_own(own: Path, headers: Path, build: Path) -> None:
    assert mended(build, "stap", "4.8") is None


def test_what_cancels_work_has_another_name(own: Path, headers: Path, build: Path) -> None:
    (headers / "task_work.h").write_text("struct callback_head *task_work_cancel_func(struct task_struct *);")
    made = mended(build, "stap", "4.8")
    assert made
    assert (made / "stp_task_work.c").read_text() == "typedef typeof(&task_work_cancel_func) x;\n"
    assert (made / "linux/uprobes-inode.c").read_text() == UPROBES
    assert (own / "stp_task_work.c").read_text() == TASK_WORK
    assert mended(build, "stap", "4.8") == made


def test_a_uprobe_is_unregistered_by_two_functions(own: Path, headers: Path, build: Path) -> None:
    (headers / "uprobes.h").write_text(UNREGISTER)
    made = mended(build, "stap", "5.1")
    assert made
    assert '_name ("uprobe_unregister_nosync")' in (made / "transport/transport.c").read_text()
    text = (made / "linux/uprobes-inode.c").read_text()
    assert "inst->uprobe = uprobe_register (inst->inode, c->offset, 0, &inst->kconsumer);" in text
    assert "uprobe_unregister_nosync (inst->uprobe, &inst->kconsumer);\n  uprobe_unregister_sync ();" in text
    assert (made / "stp_task_work.c").read_text() == TASK_WORK


def test_a_runtime_that_knows_the_kernel_is_not_mended(own: Path, headers: Path, build: Path) -> None:
    (headers / "uprobes.h").write_text(UNREGISTER)
    (own / "transport/transport.c").write_text('kallsyms_lookup_name ("uprobe_unregister_nosync");\n')
    assert mended(build, "stap", "5.6") is None


def test_a_string_on_the_stack_is_shorter_than_ours(own: Path, headers: Path, build: Path) -> None:
    (own / "handler-error.h").write_text("\tchar buf[MAXSTRINGLEN];\n")
    made = mended(build, "stap", "5.6")
    assert made
    assert (made / "handler-error.h").read_text() == "\tchar buf[256];\n"


RESERVE = """\
	if (buf->offset >= buf->chan->subbuf_size) {
		size_request = __stp_relay_switch_subbuf(buf, size_request);
"""


def test_a_message_is_not_cut_at_the_end_of_a_page(own: Path, headers: Path, build: Path) -> None:
    (own / "transport/relay_v2.c").write_text(RESERVE)
    made = mended(build, "stap", "4.8")
    assert made
    text = (made / "transport/relay_v2.c").read_text()
    assert "(buf->offset && buf->offset + size_request > buf->chan->subbuf_size)) {\n\t\tsize_request = __stp" in text


FINDER = """\
\t\t\trc = __stp_utrace_attach(tsk, &tgt->ops, tgt,
\t\t\t\t\t\t __STP_ATTACHED_TASK_EVENTS,
\t\t\t\t\t\t UTRACE_INTERRUPT);
\t\t\tdbug_task(2, "attached");
static void
stap_task_finder_post_init(void)
{
\t\t\tif (tgt == NULL || !tgt->engine_attached)
\t\t\t\tcontinue;
\tatomic_set(&__stp_task_finder_complete, 1);
}
"""


def test_threads_are_not_interrupted(own: Path, headers: Path, build: Path) -> None:
    (own / "linux/task_finder2.c").write_text(FINDER)
    made = mended(build, "stap", "4.8")
    assert made
    text = (made / "linux/task_finder2.c").read_text()
    assert "UTRACE_INTERRUPT" not in text
    assert text.index("define STALLSCOPE_OF_PROGRAM") < text.index("static void stallscope_read_maps(void)")
    assert text.index("stallscope_read_maps(void)") < text.index("stap_task_finder_post_init(void)")
    assert "\tstallscope_read_maps();\n\tatomic_set(" in text


def test_a_runtime_of_other_words_is_not_changed_in_part(own: Path, headers: Path, build: Path) -> None:
    (own / "linux/task_finder2.c").write_text(FINDER.replace("__stp_task_finder_complete", "complete"))
    assert mended(build, "stap", "9.9") is None


def test_other_mendings_have_another_copy(own: Path, headers: Path, build: Path) -> None:
    (own / "transport/relay_v2.c").write_text(RESERVE)
    one = mended(build, "stap", "4.8")
    (headers / "uprobes.h").write_text(UNREGISTER)
    assert one != mended(build, "stap", "4.8")


def test_headers_beside_the_build_folder_are_read(own: Path, headers: Path, build: Path, tmp_path: Path) -> None:
    (headers / "task_work.h").write_text("struct callback_head *task_work_cancel_func(struct task_struct *);")
    other = tmp_path / "other"
    other.mkdir()
    (other / "source").symlink_to(build)
    assert mended(other, "stap", "4.8")
