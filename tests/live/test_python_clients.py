"""Waits of Python programs that talk to others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import run

SLOW_PEER = """
import os, socket, time, urllib.request

TIMES = 40
server = socket.create_server(("127.0.0.1", 0))
server.settimeout(60)  # no peer without a client
if not os.fork():
    for _ in range(TIMES):
        connection, _ = server.accept()
        connection.recv(4096)
        time.sleep(0.05)
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 1\\r\\n\\r\\nx")
        connection.close()
    os._exit(0)

url = "http://%s:%d/" % server.getsockname()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

def ask():
    opener.open(url, timeout=5).read()

def pause():
    time.sleep(0.02)

for _ in range(TIMES):
    ask()
    pause()
os.wait()
"""


@pytest.mark.parametrize("option", ["--python", "--no-python"])
def test_a_client_with_a_timeout_waits_for_its_peer(option: str, tmp_path: Path) -> None:
    """The client's library waits with poll, many functions below the program's own one."""
    program = tmp_path / "asks.py"
    program.write_text(SLOW_PEER)
    found = run(option, "--json", "-o", tmp_path / "x.pb.gz", "--", sys.executable, program).check_succeeded().summary
    client = max((wait for wait in found["waits"] if wait["kernel_wait"] == "do_sys_poll"), key=lambda w: w["time_ns"])
    assert client["kind"] == "peer", client
    assert client["threads_share"] > 0.5
    if option == "--python":
        assert "waiting for its peer" in found["answer"][0], found["answer"]
        assert any("asks.py" in frame and frame.endswith("ask") for frame in client["frames"]), client
