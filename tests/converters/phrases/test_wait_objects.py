from __future__ import annotations

from dataclasses import replace

import pytest
from stallscope.converters.facts.wait_objects import On
from stallscope.converters.model import Sample
from stallscope.converters.model.group_limits import MEMORY as MEMORY_OF_GROUP
from stallscope.converters.model.group_limits import READ_BYTES, GroupLimit
from stallscope.converters.model.group_limits import WRITES as WRITES_OF_GROUP
from stallscope.converters.model.wait_objects import (
    DEVICE,
    EVENTS,
    FILE,
    FUSE_SERVER,
    LABEL,
    LIMIT,
    MEMORY,
    PIPE,
    READS,
    RECLAIM,
    SWAP,
    TCP,
    TERMINAL,
    UDP,
    UNIX,
    WRITES,
    Link,
    ObjectEnd,
    WaitObject,
)
from stallscope.converters.phrases.sentences import Sentences
from stallscope.converters.phrases.wait_objects import of_network, on, short
from stallscope.converters.rules.ranking import judge
from summary_profiles import MS, READ, SECOND, facts_of, waiting
from summary_texts import shown
from tcp_profiles import FAR, NARROW

TWO = [ObjectEnd("a", 1), ObjectEnd("a", 2)]
RATES = [ObjectEnd("python3 rates.py", 12014)]


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (WaitObject(1, FILE, "/srv/.lock", "ext4"), " of /srv/.lock"),
        (WaitObject(1, FILE, "/mnt/x", "nfs4"), " of /mnt/x (NFS)"),
        (WaitObject(1, FILE, "/mnt/x", "nfs4", source="nas:/export"), " of /mnt/x (NFS nas:/export)"),
        (WaitObject(1, FILE, "/mnt/x", "fuse.sshfs"), " of /mnt/x (FUSE sshfs)"),
        (WaitObject(1, FILE, "/mnt/x", "fuse.sshfs", source="a@nas:"), " of /mnt/x (FUSE sshfs a@nas:)"),
        (WaitObject(1, FILE, "/mnt/x", "fuse.bindfs", source="bindfs"), " of /mnt/x (FUSE bindfs)"),
        (WaitObject(1, FILE, "/x", "ext4", source="/dev/sda"), " of /x"),
        (
            WaitObject(1, FILE, "/mnt/x", "fuse", source="disk", ends=[ObjectEnd("slow", 5)]),
            " of /mnt/x (FUSE disk, which slow (pid 5) serves)",
        ),
        (
            WaitObject(1, FILE, "/mnt/x", "fuse", ends=[ObjectEnd("slow", 5), ObjectEnd("slow", 6)]),
            " of /mnt/x (FUSE, which 2 processes (2 × slow) serve)",
        ),
        (WaitObject(1, FUSE_SERVER), ""),  # the kernel's function is told with its meaning
        (WaitObject(1, FILE, "", "fuse"), " of a file on FUSE"),
        (WaitObject(1, FILE, "", "ext4"), ""),
        (WaitObject(1, DEVICE, "/dev/nvidia0"), " of /dev/nvidia0"),
        (WaitObject(1, TERMINAL, "/dev/pts/3"), " of the terminal /dev/pts/3"),
        (WaitObject(1, PIPE, does=WRITES, ends=RATES), " from a pipe into which python3 rates.py (pid 12014) writes"),
        (WaitObject(1, PIPE, does=READS, ends=RATES), " to a pipe that python3 rates.py (pid 12014) reads"),
        (WaitObject(1, PIPE, does=READS), " of a pipe"),
        (WaitObject(1, PIPE, "/run/fifo"), " of the pipe /run/fifo"),
        (WaitObject(1, PIPE, does=READS, ends=TWO, more_ends=1), " to a pipe that 3 processes (2 × a) read"),
        (WaitObject(1, PIPE, does=READS, ends=[ObjectEnd("app", 4)]), " to a pipe that its own process reads"),
        (WaitObject(1, TCP, remote="10.0.0.5:5432"), ", for 10.0.0.5:5432"),
        (WaitObject(1, UDP, remote="10.0.0.5:53"), ", for 10.0.0.5:53 (UDP)"),
        (WaitObject(1, TCP, remote="127.0.0.1:9303", ends=RATES), ", for python3 rates.py (pid 12014, 127.0.0.1:9303)"),
        (WaitObject(1, TCP, local="0.0.0.0:80", listens=True), " on 0.0.0.0:80"),
        (WaitObject(1, TCP), ""),
        (WaitObject(1, UNIX, "/run/db.sock", ends=RATES), ", for python3 rates.py (pid 12014, /run/db.sock)"),
        (WaitObject(1, UNIX, "/run/db.sock"), ", for /run/db.sock"),
        (WaitObject(1, UNIX), ""),
        (WaitObject(1, EVENTS), ""),
        (WaitObject(1, MEMORY), " of memory without a file"),
        (WaitObject(-1, SWAP), " of memory that is read back from swap"),
        (WaitObject(-2, LIMIT), ", at the memory limit of a control group"),
        (WaitObject(-3, RECLAIM), ", until memory is freed: the host has too little"),
        (
            WaitObject(1, TCP, remote="127.0.0.1:80", ends=RATES, queued=129, backlog=128),
            ", for python3 rates.py (pid 12014, 127.0.0.1:80), whose accept queue is full: 129 wait, "
            "its backlog is 128",
        ),
        (
            WaitObject(1, TCP, remote="127.0.0.1:80", queued=1, backlog=128),
            ", for 127.0.0.1:80, where 1 connection waits to be accepted",
        ),
    ],
)  # fmt: skip
def test_one(what: WaitObject, text: str) -> None:
    assert on(On(what), frozenset((4,))) == text


DISK = GroupLimit("/job", READ_BYTES, "io.max rbps", 10 << 20, 98 << 20, 10**10)
HIGH = GroupLimit("/job", MEMORY_OF_GROUP, "memory.high", 64 << 20, 3201, 10**9)


@pytest.mark.parametrize(
    ("what", "limit", "text"),
    [
        (
            WaitObject(1, FILE, "/d/x"),
            DISK,
            " of /d/x (control group /job may read 10 MiB/s there: io.max rbps, 98 % used)",
        ),
        (
            WaitObject(1, FILE, "/d/x"),
            replace(DISK, kind=WRITES_OF_GROUP, name="io.max wiops", limit=1200, used=12_000),
            " of /d/x (control group /job may write 1,200 times a second there: io.max wiops, 100 % used)",
        ),
        (
            WaitObject(-2, LIMIT),
            HIGH,
            ", at the memory limit of control group /job (memory.high 64 MiB, reached 3,201 times)",
        ),
        (
            WaitObject(-1, SWAP),
            replace(HIGH, used=1),
            " of memory that is read back from swap, as control group /job is at its memory limit (memory.high 64 MiB, "
            "reached once)",
        ),
    ],
)  # fmt: skip
def test_limits(what: WaitObject, limit: GroupLimit, text: str) -> None:
    assert on(On(what, limit=limit)) == text


def test_several() -> None:
    connections = On(WaitObject(1, TCP, remote="10.0.0.5:5432"), 12)
    assert on(connections) == ", for 12 connections to 10.0.0.5:5432"
    assert on(On(WaitObject(1, UDP, remote="127.0.0.54:53"), 3)) == ", for 3 UDP sockets to 127.0.0.54:53"
    assert on(On(WaitObject(1, FILE, "/data/a"), 3, "/data")) == " of 3 files in /data"
    assert on(None) == ""


def test_in_a_row() -> None:
    assert short(On(WaitObject(1, FILE, "/srv/x/y/target/.lock"))) == "…/y/target/.lock"
    assert short(On(WaitObject(1, FILE, "/srv/x.lock"))) == "/srv/x.lock"
    assert short(On(WaitObject(1, FILE))) == ""
    assert short(On(WaitObject(1, TCP, remote="10.0.0.5:5432"))) == "for 10.0.0.5:5432"
    assert short(None) == ""


def test_in_a_sentence_and_in_the_table() -> None:
    profile = waiting(READ)
    profile.objects = [WaitObject(5, PIPE, does=WRITES, ends=[ObjectEnd("make\x1b[2J", 77)])]
    profile.samples = [
        replace_labels(sample) if sample.label("state") == "interruptible" else sample for sample in profile.samples
    ]
    facts = facts_of(profile)
    sentence = Sentences(facts).of(judge(facts).verdicts[0])
    assert "in main → fetch → read from a pipe into which make\x1b[2J (pid 77) writes (" in sentence
    table = shown(profile, width=200, top=9)
    assert "│ from a pipe into which make\\x1b[2J (pid 77) writes" in table
    assert "\x1b[2J" not in table
    profile.objects = [replace(profile.objects[0], ends=[])]
    assert "read of a pipe (" in Sentences(facts_of(profile)).of(judge(facts_of(profile)).verdicts[0])


def replace_labels(sample: Sample) -> Sample:
    return sample._replace(labels=tuple(sorted((*sample.labels, (LABEL, 5)))))


@pytest.mark.parametrize(
    ("what", "number", "text"),
    [
        (WaitObject(1, TCP, retransmissions=1), 1, "; 1 segment of that connection was sent again meanwhile"),
        (WaitObject(1, TCP, retransmissions=41), 1, "; 41 segments of that connection were sent again meanwhile"),
        (WaitObject(1, TCP, retransmissions=41), 3, "; 41 segments of these connections were sent again meanwhile"),
        (
            WaitObject(1, EVENTS, retransmissions=9, resent_with="10.0.0.2:80"), 1,
            "; 9 segments of its connections were sent again meanwhile, most of them of the one to 10.0.0.2:80",
        ),
        (
            WaitObject(1, TCP, retransmissions=4, unanswered=1_500_000_000), 1,
            "; 4 segments of that connection were sent again meanwhile, and for 1.50 s there was no answer",
        ),
        (WaitObject(1, TCP), 1, ""),
    ],
)  # fmt: skip
def test_what_was_sent_again(what: WaitObject, number: int, text: str) -> None:
    assert of_network(On(what, number, time=2_000_000_000)) == text


@pytest.mark.parametrize(
    ("what", "number", "link", "text"),
    [
        (TCP, 1, FAR, "a round trip on that connection takes 80.0 ms, which explains 88.9 % of the waits"),
        (TCP, 3, FAR, "a round trip on these connections takes 80.0 ms, which explains 88.9 % of the waits"),
        (
            EVENTS, 1, FAR,
            "a round trip on the connection to 127.0.0.1:11211 takes 80.0 ms, which explains 88.9 % of the waits",
        ),
        (TCP, 1, NARROW, "that connection moves 1.91 MiB/s, which explains 100.0 % of the waits"),
        (TCP, 3, NARROW, "these connections move 1.91 MiB/s, which explains 100.0 % of the waits"),
        (
            TCP, 1, replace(FAR, smoothed=200 * MS, sent=18_000_000, rate=2_000_000),
            "that connection moves 1.91 MiB/s with round trips of 80.0 ms, which explains 100.0 % of the waits",
        ),
    ],
)  # fmt: skip
def test_a_link_that_explains_the_waits(what: str, number: int, link: Link, text: str) -> None:
    found = On(WaitObject(1, what, remote="x", links=[link]), number, time=9 * SECOND, count=100, longest=90 * MS)
    assert of_network(found) == f"; {text}"


def test_a_link_of_another_wait() -> None:
    found = On(WaitObject(1, EVENTS, links=[FAR]), time=9 * SECOND, count=100, longest=90 * MS)
    assert of_network(found, "rank 3 (pid 7)") == (
        "; a round trip on the connection of rank 3 (pid 7) to 127.0.0.1:11211 takes 80.0 ms, which explains 88.9 % of "
        "the waits on it"
    )


def test_a_link_in_a_row() -> None:
    found = On(WaitObject(1, TCP, remote="10.0.0.2:80", links=[FAR]), time=9 * SECOND, count=100, longest=90 * MS)
    assert short(found) == "for 10.0.0.2:80, a round trip takes 80.0 ms"
    narrow = On(replace(found.what, links=[NARROW]), time=9 * SECOND, count=100, longest=90 * MS)
    assert short(narrow) == "for 10.0.0.2:80, at 1.91 MiB/s"
    assert short(replace(found, count=10)) == "for 10.0.0.2:80"


def test_what_any_network_loses() -> None:
    one = On(WaitObject(1, TCP, remote="10.0.0.2:80", retransmissions=1), time=10_000_000_000)
    assert of_network(one) == ""
    assert short(one) == "for 10.0.0.2:80"
    assert short(replace(one, time=1_000_000_000)) == "for 10.0.0.2:80, 1 segment sent again"
    assert of_network(None) == ""
