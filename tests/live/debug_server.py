"""elfutils' debuginfod, serving the debug file of one program."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from stallscope.tracers.images.elf import ElfFile, FileSource

_PATIENCE = 60


class DebugServer:
    """Serves when constructed. A context manager: on the way out the server is gone."""

    def __init__(self, program: Path, folder: Path) -> None:
        """``folder`` is made for it."""
        folder.mkdir()
        self.debug_file = folder / "program.debug"
        subprocess.run(["objcopy", "--only-keep-debug", program, self.debug_file], check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = ["debuginfod", "-F", "-d", ":memory:", "-p", str(port), str(folder)]
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=null, stderr=null, cwd=folder)
        with program.open("rb") as file:
            build_id = ElfFile(FileSource(file.fileno())).build_id()
        try:
            self._wait_for(f"{self.url}/buildid/{build_id}/debuginfo")
        except BaseException:
            self.stop()
            raise

    def environment(self, cache: Path) -> dict[str, str]:
        """Environment of a client."""
        return {"DEBUGINFOD_URLS": self.url, "DEBUGINFOD_CACHE_PATH": str(cache)}

    def _wait_for(self, url: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            assert self._process.poll() is None
            try:
                urllib.request.urlopen(url).close()
                return
            except (urllib.error.URLError, ConnectionError):
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def __enter__(self) -> DebugServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
