"""Description of the module that ``--stap-compile-only`` has written."""

from __future__ import annotations

from ....converters.base.units import plural
from .compiling import MOST_FILES, Source
from .folders import release_of


def described(source: Source, command: str) -> str:
    """``command``: the one that it is for."""
    files, release = len(source.files), release_of(source.build)
    used = f"take it along, and give it to the same command there: {command} --engine stap --stap-module"
    if not files:
        return (
            f"for {command} and Linux {release}, without any file's functions and tables: user stacks will end at "
            f"their first frame. Name the programs and libraries with --stap-symbols FILE. Else, {used}"
        )
    most = f" (of {files}: others find no room)" if files > MOST_FILES else ""
    named = f"with the functions and tables of {plural(min(files, MOST_FILES), 'file')}{most}"
    return f"for {command} and Linux {release}, {named}; {used}"
