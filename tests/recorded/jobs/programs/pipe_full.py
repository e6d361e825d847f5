"""Starts a program whose output goes to a pipe, and waits for its end without reading."""

import subprocess
import sys
import threading


def export_rows() -> int:
    with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as child:
        return child.wait()


threading.Timer(0.5, print, ("ready",), {"flush": True}).start()
export_rows()
