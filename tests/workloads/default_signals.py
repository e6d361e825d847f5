"""Signals as a program at a terminal finds them, also where the tests were started with some ignored."""

from __future__ import annotations

import signal

_IGNORED_ELSEWHERE = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
"""Signals that are ignored by background processes of a shell, by nohup, and by what runs tests unattended."""


def in_child() -> None:
    """``preexec_fn=in_child``: nothing that the child is sent is ignored because we ignore it."""
    for number in _IGNORED_ELSEWHERE:
        signal.signal(number, signal.SIG_DFL)
