"""A current folder whose file system does not answer: nothing is looked up there that the user has not named there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attackers import Attacker, is_zombie
from watching import Command, command_path

pytestmark = pytest.mark.usefixtures("hostile")

_PATIENCE = 30.0
_BEGINS = 'cd "$1" && kill -USR1 "$2" && shift 2 && exec "$@"'
_SERVES = "echo ready $$; exec sleep 100"
_STACKS = "main;work 7\n"


def _words(name: str, folder: Path) -> tuple[object, ...]:
    """A command that has nothing to do in the current folder."""
    (folder / "in.folded").write_text(_STACKS)
    if name == "trace-convert":
        return command_path(name), folder / "in.folded", "-o", folder / "out.svg"
    return command_path(name), "-p", os.getpid(), "-d", "0.2", "-o", folder / "out.folded"


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("trace-convert", ()),
        ("trace-offcpu", ()),
        ("trace-func", ("libc:getpid",)),
        ("trace-func", ("libc.so.6:getpid",)),
    ],
    ids=["convert", "offcpu", "name of a library", "name of a file"],
)
def test_a_current_folder_that_never_answers(
    attacker: Attacker, tmp_path: Path, name: str, more: tuple[str, ...]
) -> None:
    words = (*_words(name, tmp_path), *more)
    served = attacker.programs / "libwait.so"
    server = (attacker.programs / "fuse_server", "-r", attacker.uid, attacker.programs / "fuse", attacker.mount)
    inside = attacker.run(*server, served, "--", "sh", "-c", _SERVES, as_root=True)
    parent = int(Path(f"/proc/{inside}/stat").read_text().rpartition(")")[2].split()[1])
    with Command(
        "nsenter", f"--mount=/proc/{inside}/ns/mnt", "sh", "-c", _BEGINS, "sh", attacker.mount, parent, *words
    ) as command:
        command.read(_PATIENCE)
        outcome = command.outcome(None, None)
        assert not is_zombie(parent)
    assert outcome.status is not None, "it waits for the folder"
    assert outcome.status == 0, outcome.text
    assert list(tmp_path.glob("out.*"))
