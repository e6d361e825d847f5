#!/usr/bin/env python3
"""A stap for tests: logs its arguments to $FAKE_STAP_LOG, writes a module, or says $FAKE_STAP_SAYS.
$FAKE_STAP_SECONDS: it takes so long."""

from __future__ import annotations

import os
import sys
import time

if sys.argv[1:] == ["--version"]:
    print(os.environ.get("FAKE_STAP_VERSION", "Systemtap translator/driver (version 4.8/0.188, Debian version 4.8-2)"))
    sys.exit()
with open(os.environ["FAKE_STAP_LOG"], "a") as log:
    print(*sys.argv[1:], file=log)
if said := os.environ.get("FAKE_STAP_SAYS"):
    sys.exit(said)
time.sleep(float(os.environ.get("FAKE_STAP_SECONDS", "0")))
name = sys.argv[sys.argv.index("-m") + 1]
with open(f"{name}.ko", "w") as module:
    module.write(f"a module\0name={name}\0")
