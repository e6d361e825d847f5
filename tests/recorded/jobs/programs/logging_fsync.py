"""Six threads write to one log, whose handler brings each line to the disk while it holds the log's lock."""

import logging
import os
import threading


class AuditHandler(logging.FileHandler):
    def emit(self, record: logging.LogRecord) -> None:
        super().emit(record)
        os.fsync(self.stream.fileno())


def serve_requests() -> None:
    while True:
        log.warning("request served")


log = logging.getLogger("audit")
log.addHandler(AuditHandler("audit.log"))
threads = [threading.Thread(target=serve_requests, daemon=True) for _ in range(6)]
for thread in threads:
    thread.start()
threading.Timer(0.5, print, ("ready",), {"flush": True}).start()
for thread in threads:
    thread.join()
