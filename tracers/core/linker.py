"""Build step: ``python -m stallscope.tracers.core.linker OUT IN…`` links BPF objects into one (bpftool is not needed)."""

from __future__ import annotations

import sys
from pathlib import Path

from .libbpf import BpfError, link_objects

_DEFINES_MAPS = "scope.bpf.o"


def main(arguments: list[str]) -> int:
    output, *inputs = map(Path, arguments)
    # libbpf 1.1 writes offset 0 for a map that it meets as `extern` first: the definitions have to come first.
    inputs.sort(key=lambda path: path.name != _DEFINES_MAPS)
    try:
        link_objects(output, inputs)
    except BpfError as error:
        print(error, *error.log, sep="\n", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
