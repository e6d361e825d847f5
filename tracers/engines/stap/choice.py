"""Options of the engine that the user chose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....converters.base.errors import StallscopeError
from ....converters.base.text import printable

_ELF = b"\x7fELF"


@dataclass(frozen=True)
class How:
    """The user's choice."""

    user_stacks: bool = True
    kernel_stacks: bool = True
    module: Path | None = None
    """Compiled before, by ``--stap-compile-only``."""
    write: Path | None = None
    """File to which the module is only compiled; None: there is a trace."""
    build: Path | None = None
    """The kernel's build folder; None: that of the running kernel."""
    files: tuple[str, ...] = ()
    """More files whose functions stacks can show."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> How:
        """Makes the choice from the values of a command's options. StallscopeError for a file that is no program and no
        library."""
        require_elf(given["stap_files"])
        return cls(
            user_stacks=not given["kernel_only"],
            kernel_stacks=not given["user_only"],
            module=given["stap_module"],
            write=given["stap_compile_only"],
            build=given["stap_build"],
            files=tuple(given["stap_files"]),
        )


def require_elf(files: Iterable[str]) -> None:
    """StallscopeError if one of the files of --stap-symbols is no program and no library."""
    for path in files:
        try:
            with open(path, "rb") as file:
                is_elf = file.read(len(_ELF)) == _ELF
        except OSError as error:
            raise StallscopeError(
                f"cannot read {printable(path)}: {error.strerror}",
                "give --stap-symbols a file that you may read",
                exit_code=2,
            ) from None
        if not is_elf:
            raise StallscopeError(
                f"{printable(path)} is not an ELF file: it has no functions and tables",
                "give --stap-symbols a program or a library; of a script, its interpreter (readlink -f)",
                exit_code=2,
            )
