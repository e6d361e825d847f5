"""A database in which sessions block each other: the trace says of them what the database itself says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from postgres import HotRow, programs

SECONDS = 5
TRACE_WAKEUP = str(Path(sys.executable).with_name("trace-wakeup"))


def test_who_blocks_whom_is_what_the_database_says(
    live: None, require: Callable[[bool, str], None], tmp_path: Path
) -> None:
    require(programs() is not None, "no PostgreSQL (Debian's package postgresql)")
    with HotRow(quick=7, slow_ms=40) as row:
        scope = ",".join(map(str, row.pids))
        output = str(tmp_path / "x.folded")
        command = [TRACE_WAKEUP, "--json", "--depth", "16", "-d", str(SECONDS), "-p", scope, "-o", output]
        tracing = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        sampled = row.roots(SECONDS)
        summary = json.loads(tracing.communicate()[0])
        slow, pids = row.slow, set(row.pids)
    blocking = summary["waits_for"]
    nodes = blocking["nodes"]
    traced: dict[int, Counter[int]] = {}
    for end in blocking["ends"]:
        victim, blocker = (nodes[end[key]]["pid"] for key in ("from", "to"))
        if victim in pids and blocker in pids:
            traced.setdefault(victim, Counter())[blocker] += end["time_ns"]
    assert set(sampled) == set(traced) == pids
    for pid in pids - {slow}:
        shares = [found[pid][slow] / found[pid].total() for found in (traced, sampled)]
        assert traced[pid].most_common(1)[0][0] == slow, (pid, traced, sampled)
        assert sampled[pid].most_common(1)[0][0] == slow, (pid, traced, sampled)
        # The database is asked when there is a core for that: not as often while all of its processes run.
        assert abs(shares[0] - shares[1]) <= 0.3, (shares, traced, sampled)
    blamed = re.findall(r"ends with postgres \(pid (\d+)\)", " ".join(summary["answer"]))
    assert set(blamed) <= {str(slow)}
