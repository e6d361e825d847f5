"""Rights of the process that reads."""

from __future__ import annotations

import os

from stallscope.tracers.outside.client import Client


def test_it_has_few_rights(root: None) -> None:
    client = Client()
    client.ask("maps", os.getpid(), True)
    assert client._child
    pid = client._child.pid
    with open(f"/proc/{pid}/status") as file:
        status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    permitted = int(status["CapPrm"], 16)
    assert permitted and not permitted & ~(1 << 2 | 1 << 19 | 1 << 40), "reading, tracing, map_files"
    assert int(status["CapEff"], 16) == permitted
    with open(f"/proc/{pid}/oom_score_adj") as file:
        assert file.read().strip() == "900"
    client.close()
