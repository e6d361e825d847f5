"""The checks that run inside a guest, by name: ``python in_guest.py CHECK…``, one after the other in one process.

Each is a function that returns what it measured, as one line for docs/kernels.md, and raises AssertionError where that
is wrong. Time is less exact under emulation: the bounds are wider than those of tests/live, and stand with the checks.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from stallscope.tracers.kernel.libbpf import BpfError
from stallscope.tracers.kernel.shapes import reason

SHARE = Path("/run/share")
CHECKS: dict[str, str] = {
    "load": "loading_checks:load",
    "doctor": "loading_checks:doctor",
    "wheel": "loading_checks:wheel",
    "refused": "loading_checks:refused",
    "truth": "time_checks:truth",
    "wall": "time_checks:wall",
    "timeline": "time_checks:timeline",
    "peer": "time_checks:peer",
    "ioctl": "call_checks:ioctl",
    "calls": "call_checks:calls",
    "func": "call_checks:func",
    "collectives": "collective_checks:collectives",
    "ask": "call_checks:ask",
    "wakeup": "wait_checks:wakeup",
    "locks": "wait_checks:locks",
    "objects": "wait_checks:objects",
    "quota": "wait_checks:quota",
    "stacks": "stack_checks:stacks",
    "python": "stack_checks:python",
    "everything": "stack_checks:everything",
    "command": "stack_checks:command",
    "demo": "program_checks:demo",
    "storms": "program_checks:storms",
    "bcc": "engine_checks:bcc",
    "stap_clock": "engine_checks:stap_clock",
    "auto_stap": "engine_checks:auto_stap",
    "auto_perf": "engine_checks:auto_perf",
    "perf": "engine_checks:perf",
    "eu_stack": "engine_checks:eu_stack",
    "no_bpf": "engine_checks:no_bpf",
    "stap": "stap_check:run",
    "stap_ioctl": "stap_calls_check:ioctl",
    "stap_wakeup": "stap_calls_check:wakeup",
    "stap_cuda": "stap_calls_check:cuda",
    "stap_storm": "stap_trouble:stap_storm",
    "stap_deep": "stap_trouble:stap_deep",
    "stap_killed": "stap_trouble:stap_killed",
    "stap_waits": "stap_trouble:stap_waits",
    "stap_plain": "stap_plain:run",
    "nvidia": "nvidia_check:nvidia",
    "nvidia_holder": "nvidia_check:nvidia_holder",
    "nvidia_stap": "nvidia_check:nvidia_stap",
}
"""Functions by name. Only the modules of those that are asked for are imported, which takes seconds in a guest."""


@contextlib.contextmanager
def _answer(check: str) -> Iterator[dict[str, Any]]:
    answer: dict[str, Any] = {"ok": False, "figures": "", "failure": ""}
    began = time.monotonic()
    try:
        yield answer
        answer["ok"] = True
    except AssertionError as error:
        traceback.print_exc()
        where = traceback.format_exc().splitlines()[-2].strip()
        answer["failure"] = str(error).splitlines()[0] if str(error) else where
    except BpfError as error:
        print(*error.log, sep="\n")
        answer["failure"] = f"{error} ({error.program}: {reason(error.log)})"
    except Exception as error:
        traceback.print_exc()
        answer["failure"] = f"{type(error).__name__}: {error}".splitlines()[0]
    finally:
        answer["seconds"] = time.monotonic() - began
        (SHARE / f"{check}.json").write_text(json.dumps(answer))


def main() -> int:
    os.environ["STALLSCOPE_CACHE"] = "/run/cache"
    failed = 0
    for check in sys.argv[1:]:
        print(f"===== {check}", flush=True)
        with _answer(check) as answer:
            answer["figures"] = resolve_name(CHECKS[check])()
        failed += not answer["ok"]
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
