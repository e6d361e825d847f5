"""Files that are written, and held open: into a folder of somebody else's, and of file systems that come and go."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from attackers import ATTACKS, Attacker
from commands import environment
from neighbours import Neighbour
from watching import Command, command_path, watch

pytestmark = pytest.mark.usefixtures("hostile", "nothing_left")

_END = 2.0
"""Seconds from Ctrl-C to the end, as promised."""
_FORGED, _TRUE = "forged_name", "true_name"
_BUILD_ID = "-Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567"
_LIBRARY = """
#include <time.h>
__attribute__((noinline)) void NAME(void)
{
	struct timespec time = { .tv_nsec = 20000000 };
	nanosleep(&time, 0);
	__asm__ volatile("");
}
void call(void) { NAME(); __asm__ volatile(""); }
"""
_CALLS = "import ctypes, os, sys; os.write(1, b'ready %d\\n' % os.getpid()); library = ctypes.CDLL(sys.argv[1])\n"
_CALLS += "while True: library.call()"


def test_links_in_the_folder_of_outputs(attacker: Attacker, bystander: Neighbour, outputs: Path) -> None:
    """Root writes nothing elsewhere, whatever the attacker does in his folder."""
    victim = outputs / "victim"
    victim.write_text("precious")
    path = attacker.home / "out.svg"
    attacker.python("links", path, victim)
    for _ in range(3):
        target = ("-p", bystander.process.pid, "-d", 0.2, "--force", "-o", path)
        outcome = watch(command_path("trace-offcpu"), *target, patience=60, seconds=20, cwd=attacker.home)
        assert "Traceback" not in outcome.text
        assert victim.read_text() == "precious"
        assert victim.stat().st_uid == 0
        assert victim.stat().st_nlink == 1
    assert list(outputs.iterdir()) == [victim]


@pytest.mark.parametrize("suffix", ["svg", "pb.gz", "folded", "html", "pftrace"])
def test_nobody_else_reads_what_was_captured(suffix: str, bystander: Neighbour, outputs: Path) -> None:
    path = outputs / f"out.{suffix}"
    watch(command_path("trace-offcpu"), "-p", bystander.process.pid, "-o", path, patience=60)
    assert path.stat().st_mode & 0o777 == 0o600


def test_descriptors_of_file_systems_that_are_gone(attacker: Attacker, outputs: Path) -> None:
    """A mount namespace that has ended keeps nothing open. (Files from which a process ran stay open, for names.)"""
    with Command(command_path("trace-offcpu"), "-a", "-o", outputs / "out.pb.gz") as running:
        assert running.traced_after(60) is not None
        folder = f"/proc/{running.process.pid}/fd"
        ATTACKS["mount namespaces"](attacker)
        counts = []
        for _ in range(12):
            running.read(1)
            counts.append(len(os.listdir(folder)))
        assert running.interrupt() is not None
    assert counts[-1] - counts[2] < 20, counts


def test_a_build_id_is_no_name(attacker: Attacker, outputs: Path) -> None:
    """A file that says it is another one gives its names to no stacks of another user."""
    true, forged = attacker.programs / "libtrue.so", attacker.home / "libforged.so"
    for path, name in ((true, _TRUE), (forged, _FORGED)):
        command = ["gcc", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC", _BUILD_ID, f"-DNAME={name}"]
        subprocess.run([*command, "-x", "c", "-", "-o", path], input=_LIBRARY, text=True, check=True)
    os.chown(forged, attacker.uid, attacker.uid)
    with Command(command_path("trace-offcpu"), "-a", "-o", outputs / "out.folded") as running:
        assert running.traced_after(60) is not None
        forger = attacker.run("/usr/bin/python3", "-c", _CALLS, forged)
        running.read(1)
        victim = attacker.run("/usr/bin/python3", "-c", _CALLS, true, as_root=True)
        running.read(1)
        assert running.interrupt() is not None
    lines = (outputs / "out.folded").read_text().splitlines()
    stacks = {pid: "\n".join(line for line in lines if f"-{pid};" in line) for pid in (forger, victim)}
    assert _TRUE in stacks[victim]
    assert _FORGED not in stacks[victim]


def test_a_debug_file_of_a_mount_namespace_names_nothing_in_others(attacker: Attacker, outputs: Path) -> None:
    """The debug file is of a library of root's, which both map: the attacker's process comes first."""
    source = _LIBRARY.replace("void NAME(void)", "static void NAME(void)")
    true, forged = attacker.programs / "libstripped.so", attacker.home / "forged.debug"
    for path, name, flag in ((true, _TRUE, "-s"), (forged, _FORGED, "-g")):
        command = ["gcc", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC", _BUILD_ID, f"-DNAME={name}", flag]
        subprocess.run([*command, "-x", "c", "-", "-o", path], input=source, text=True, check=True)
    folder = f"/usr/lib/debug/.build-id/{_BUILD_ID[-40:-38]}"
    mounts = f"mount -t tmpfs none /usr/lib/debug; mkdir -p {folder}; cp {forged} {folder}/{_BUILD_ID[-38:]}.debug"
    script = f'{mounts}; exec /usr/bin/python3 -c "$0" "$1"'
    forger = attacker.run("unshare", "-Urm", "sh", "-c", script, _CALLS, true)
    victim = attacker.run("/usr/bin/python3", "-c", _CALLS, true, as_root=True)
    out = outputs / "out.folded"
    assert watch(command_path("trace-offcpu"), "-p", f"{forger},{victim}", "-o", out, patience=60).status == 0
    lines = out.read_text().splitlines()
    for pid in (forger, victim):
        stacks = "\n".join(line for line in lines if f"-{pid};" in line)
        assert ";call;" in stacks
        assert _FORGED not in stacks


def test_ctrl_c_while_many_files_of_one_user_are_read(attacker: Attacker, outputs: Path) -> None:
    """Ctrl-C ends the command without a terminal, where it may begin the trace."""
    hog = ATTACKS["many files"](attacker)
    for scope in (("-a",), ("-p", str(hog))):
        for seconds in (0.7, 1.4):
            command = [command_path("trace-offcpu"), *scope, "-o", str(outputs / "out.folded"), "--force"]
            running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
            try:
                time.sleep(seconds)
                running.send_signal(signal.SIGINT)
                running.wait(_END)
            finally:
                running.kill()
