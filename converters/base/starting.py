"""How a console script starts its command: Ctrl-C while Python imports it ends the process without a traceback.

Imports nothing but ``signal``: what comes before is Python's own start.
"""

from __future__ import annotations

import signal

TYPE_CHECKING = False  # typing takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable

_INTERRUPTED = 128 + signal.SIGINT


def run(module: str) -> int:
    """Imports ``module``, which has a `cli.command` called ``main``, runs it, and returns the exit status.

    While `main` runs, Ctrl-C is a KeyboardInterrupt, from which it cleans up; before and after, it has its default
    effect, and a shell reports status 130. Where SIGINT is ignored, as in a background job, it stays so.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.default_int_handler:
        return _main(module)()
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        main = _main(module)
        signal.signal(signal.SIGINT, handler)
        status = main()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    except KeyboardInterrupt:  # just before the first line or the last, or beside main()
        status = _INTERRUPTED
    return status


def _main(module: str) -> Callable[[], int]:
    from importlib import import_module

    main: Callable[[], int] = import_module(module).main
    return main
