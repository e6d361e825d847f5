"""Lines of /proc/locks that tests write."""

from __future__ import annotations

import os

ME = os.getpid()
OWNER = b"1: FLOCK  ADVISORY  WRITE %d 08:01:99 0 EOF\n"
WAITER = b"1: -> FLOCK  ADVISORY  WRITE %d 08:01:99 0 EOF\n"
SOON = 600 * 10**9
"""ns from now when a request is made that is recent at all looks of a test."""
