"""Build step: ``python -m stallscope.tracers.kernel.linker OUT IN…`` links BPF objects, without bpftool."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .libbpf import BpfError, check, check_pointer, library

_DEFINES_MAPS = "scope.bpf.o"


def link_objects(output: Path, inputs: list[Path]) -> None:
    """Statically links BPF object files into one. BpfError when they are incompatible."""
    linker = check_pointer(library().bpf_linker__new(os.fsencode(output), None), "BPF linker")
    try:
        for path in inputs:
            check(library().bpf_linker__add_file(linker, os.fsencode(path), None), f"link {path.name}")
        check(library().bpf_linker__finalize(linker), f"link {output.name}")
    finally:
        library().bpf_linker__free(linker)


def main(arguments: list[str]) -> int:
    output, *inputs = map(Path, arguments)
    # libbpf 1.1 writes offset 0 for a map that it first sees as `extern`: the definitions have to come first.
    inputs.sort(key=lambda path: path.name != _DEFINES_MAPS)
    try:
        link_objects(output, inputs)
    except BpfError as error:
        print(error, *error.log, sep="\n", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
