"""SystemTap's runtime, which is compiled into each module: a copy that is mended for kernels which it does not know."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .folders import own_folder, take_place

SCRIPTS = Path(__file__).resolve().parents[3] / "stap"
_MAPS = (SCRIPTS / "runtime" / "maps.c").read_text()
_POST_INIT = "static void\nstap_task_finder_post_init(void)\n{\n"
_RUNTIMES = ("/usr/share/systemtap/runtime", "/usr/local/share/systemtap/runtime")


@dataclass(frozen=True)
class Mending:
    """Change of the runtime for kernels whose ``header`` has ``name``, unless its ``file`` has it, too.

    Without a header: for every kernel, if the runtime has the texts that are to be changed.
    """

    name: str
    header: str
    file: str
    changes: tuple[tuple[str, str, str], ...]
    """File of the runtime, text, and what it must be."""


_MENDINGS = (
    # Stable kernels since 2024: task_work_cancel() is another function there. Without user_addr_max() (kernels since
    # 5.18), stacks of user code cannot be read in interrupts.
    Mending(
        "task_work_cancel_func",
        "include/linux/task_work.h",
        "stp_task_work.c",
        (
            ("stp_task_work.c", "typeof(&task_work_cancel)", "typeof(&task_work_cancel_func)"),
            ("stp_task_work.c", '_name("task_work_cancel")', '_name("task_work_cancel_func")'),
            (
                "linux/addr-map.c",
                "\t  && ((user_addr_max() - size) < addr)\n#endif\n",
                "\t  && ((user_addr_max() - size) < addr)\n#else\n\t  && ((TASK_SIZE_MAX - size) < addr)\n#endif\n",
            ),
        ),
    ),
    # Kernels since 6.12: uprobe_register() gives what is unregistered, by two other functions.
    Mending(
        "uprobe_unregister_nosync",
        "include/linux/uprobes.h",
        "transport/transport.c",
        (
            ("transport/transport.c", '_name ("uprobe_unregister")', '_name ("uprobe_unregister_nosync")'),
            ("linux/uprobes-inode.c", "typeof(&uprobe_unregister)", "typeof(&uprobe_unregister_nosync)"),
            (
                "linux/uprobes-inode.c",
                "struct stapiu_instance {\n",
                "struct stapiu_instance {\n  struct uprobe *uprobe;\n",
            ),
            (
                "linux/uprobes-inode.c",
                "    ret = uprobe_register (inst->inode, c->offset, &inst->kconsumer);\n",
                "    {\n      inst->uprobe = uprobe_register (inst->inode, c->offset, 0, &inst->kconsumer);\n"
                "      ret = PTR_ERR_OR_ZERO (inst->uprobe);\n    }\n",
            ),
            (
                "linux/uprobes-inode.c",
                "  (void) uprobe_unregister (inst->inode, c->offset, &inst->kconsumer);\n",
                "  uprobe_unregister_nosync (inst->uprobe, &inst->kconsumer);\n  uprobe_unregister_sync ();\n",
            ),
            # What newer kernels' flags warn of is an error in a module.
            ("linux/uprobes-inode.c", "    ; // already unlocked\n", "    {} // already unlocked\n"),
        ),
    ),
    # A message that begins in the last bytes of a page of the buffer, with room for no more than its header, is thrown
    # away, and leaves bytes there that are none. SystemTap 4.8 then reads what follows from a wrong place.
    Mending(
        "whole_messages",
        "",
        "transport/relay_v2.c",
        (
            (
                "transport/relay_v2.c",
                "\tif (buf->offset >= buf->chan->subbuf_size) {\n\t\tsize_request",
                "\tif (buf->offset >= buf->chan->subbuf_size ||\n"
                "\t    (buf->offset && buf->offset + size_request > buf->chan->subbuf_size)) {\n\t\tsize_request",
            ),
        ),
    ),
    # All threads of the machine are interrupted when a trace begins. Now only main threads of programs that have timed
    # functions of their own are.
    Mending(
        "interrupts",
        "",
        "linux/task_finder2.c",
        (
            (
                "linux/task_finder2.c",
                "\t\t\t\t\t\t __STP_ATTACHED_TASK_EVENTS,\n\t\t\t\t\t\t UTRACE_INTERRUPT);\n\t\t\tdbug_task",
                "\t\t\t\t\t\t __STP_ATTACHED_TASK_EVENTS,\n\t\t\t\t\t\t UTRACE_REPORT);\n\t\t\tdbug_task",
            ),
            (
                "linux/task_finder2.c",
                "if (tgt == NULL || !tgt->engine_attached)\n",
                "if (tgt == NULL || !tgt->engine_attached || !STALLSCOPE_OF_PROGRAM(tgt))\n",
            ),
            (
                "linux/task_finder2.c",
                "\tatomic_set(&__stp_task_finder_complete, 1);\n",
                "\tstallscope_read_maps();\n\tatomic_set(&__stp_task_finder_complete, 1);\n",
            ),
            (
                "linux/task_finder2.c",
                _POST_INIT,
                "#define STALLSCOPE_OF_PROGRAM(tgt) ((tgt)->pathlen > 0 || (tgt)->build_id_len > 0)\n"
                f"{_MAPS}\n{_POST_INIT}",
            ),
        ),
    ),
    # Since 5.6 a string is on the kernel's stack while an error is told, and ours are longer than a frame may be.
    Mending(
        "handler_error",
        "",
        "handler-error.h",
        (("handler-error.h", "char buf[MAXSTRINGLEN];", "char buf[256];"),),
    ),
)


def changes() -> str:
    """All of them, as a text: what was compiled with others is compiled anew."""
    return repr(_MENDINGS)


def mended(build: Path, stap: str, version: str) -> Path | None:
    """The runtime for the kernel of a build folder; None: that of ``stap``, of ``version``, is right."""
    own = str(Path(stap).resolve().parent.parent / "share/systemtap/runtime")
    places = (os.environ.get("SYSTEMTAP_RUNTIME", ""), own, *_RUNTIMES)
    runtime = next((Path(each) for each in places if each and Path(each, "stp_task_work.c").exists()), None)
    needed = [each for each in _MENDINGS if runtime and _is_needed(each, runtime, build)]
    if runtime is None or not needed:
        return None
    texts = [(runtime / name).read_bytes() for each in needed for name, _, _ in each.changes]
    key = hashlib.sha256(repr((needed, texts)).encode()).hexdigest()[:8]
    return _copy(runtime, needed, own_folder() / "-".join(("runtime", version, key)))


def _is_needed(mending: Mending, runtime: Path, build: Path) -> bool:
    file = runtime / mending.file
    text = file.read_text() if file.exists() else ""
    if not mending.header:
        return all(old in text for _, old, _ in mending.changes)
    headers = (folder / mending.header for folder in (build, build / "source"))
    declared = next((file.read_text() for file in headers if file.exists()), "")
    return mending.name in declared and file.exists() and mending.name not in text


def _copy(runtime: Path, mendings: list[Mending], to: Path) -> Path:
    """Copies the runtime, which keeps its path, by which stap caches what it knows."""
    if to.exists():
        return to
    aside = to.with_name(f"{to.name}.{os.getpid()}")
    shutil.copytree(runtime, aside)
    for name, old, new in (change for mending in mendings for change in mending.changes):
        file = aside / name
        file.write_text(file.read_text().replace(old, new))
    return take_place(aside, to)
