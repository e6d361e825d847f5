"""The process that runs the C++ demangler for `demangle`: mangled names on stdin, answers on stdout, one per line.

It has no rights when it reads the first name.
"""

from __future__ import annotations

import resource
import sys

from ..base.confining import confine

_MEMORY = 256 << 20
_CPU_SECONDS = 3


def main() -> None:
    """Answers each line of stdin with at most ``argv[1]`` characters, or with an empty line if it is not a C++ name."""
    for what, limit in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_CPU, _CPU_SECONDS), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(what)
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(what, (limit, limit))
    import cxxfilt

    confine()
    longest = int(sys.argv[1])
    names = sys.stdin.buffer.read().split(b"\n")
    for name in names:
        try:
            answer = cxxfilt.demangleb(name)[: 4 * longest].decode("utf-8", "ignore")[:longest]
        except (cxxfilt.Error, MemoryError):
            answer = ""
        # Each is flushed, so that the parent knows which one crashed us.
        sys.stdout.buffer.write(answer.replace("\n", " ").encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
