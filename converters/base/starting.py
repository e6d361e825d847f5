"""Start of a console script's command: isolated, and Ctrl-C while Python imports it ends the process silently.

Imports nothing but ``signal``: what comes before is Python's own start. The scripts that we install ourselves have the
option -I in their first line; those that pip has made have not.
"""

from __future__ import annotations

import signal

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable

_HARMLESS = frozenset(
    ("PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUNBUFFERED", "PYTHONUTF8")
)
"""Variables that change neither what is imported nor what is done."""
_INTERRUPTED = 128 + signal.SIGINT


def run(module: str) -> int:
    """Imports ``module``, which has a `cli.command` called ``main``, runs it, and returns the exit status.

    While `main` runs, Ctrl-C is a KeyboardInterrupt, from which it cleans up; before and after, it has its default
    effect, and a shell reports status 130. Where SIGINT is ignored, as in a background job, it stays so.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.default_int_handler:
        _isolate()
        return _main(module)()
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _isolate()
        main = _main(module)
        signal.signal(signal.SIGINT, handler)
        status = main()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:  # just before the first line or the last, or beside main()
        status = _INTERRUPTED
    return status


def _isolate() -> None:
    """Executes a console script again, isolated, if a variable of the environment could change what it does. Python
    itself, and what is imported at its start, has seen the variable by then."""
    import os
    import sys

    if sys.flags.isolated or sys.orig_argv[1:2] != sys.argv[:1] or not os.path.isabs(sys.executable or ""):
        return
    if any(name.startswith("PYTHON") and name not in _HARMLESS for name in os.environ):
        os.execv(sys.executable, [sys.executable, "-I", *sys.orig_argv[1:]])


def _main(module: str) -> Callable[[], int]:
    from importlib import import_module

    main: Callable[[], int] = import_module(module).main
    return main
