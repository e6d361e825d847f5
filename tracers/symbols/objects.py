"""One mapped file for the symboliser: opened while it is surely the right one, read when names are needed."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from ...converters.model import Module
from ..base.budget import Readings, reading
from ..base.descriptors import Budget, Share
from ..images.debugfile import find_debug_file, has_lines, verified
from ..images.elf import MAX_SYMBOLS, ElfError, ElfFile, FileSource, TooMuch
from ..images.files import HOST, Root, open_left
from ..images.go_table import GoFunctions, find_go_table
from ..images.maps import Mapping
from ..images.symtab import Bounds, Symbol, SymbolTable, has_symtab
from ..unwind.functions import function_bounds
from ..unwind.sections import UnwindError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ObjectFile:
    """The file behind a mapping. Nothing is parsed before :meth:`names` or another query needs it.

    The object owns ``fd``, which is None when the file could not be opened (or kept open) in time; the file is
    then looked up by path once more when needed, if ``descriptors`` has one for it. ``mapped_ns`` is when it was
    mapped (Unix epoch).
    """

    def __init__(
        self, mapping: Mapping, root: Root, fd: int | None, mapped_ns: int, descriptors: Share | None = None
    ) -> None:
        self.path = mapping.file_path
        self.descriptors = descriptors or Budget().of(0)
        """Descriptors of the user whose process has mapped it first."""
        self.problem = ""
        """Reason why there are no names, "" if there is no problem."""
        self.is_left_out = False
        """Whether it was not opened because that user, or his process, maps too many files."""
        self._mapping = mapping
        self._root = root
        self._fd = fd
        self._mapped_ns = mapped_ns
        self.readings = Readings()
        """Limits of what may be read of it, and of other files."""
        self._elf: ElfFile | None = None
        self._debug: tuple[ElfFile, int] | None = None
        """Separate debug file, and its descriptor; None: there is none, or it was not looked for."""
        self._sought = False
        """Whether the debug file has been looked for."""
        self._roots = {root}
        """Roots of the processes that map it."""
        self._debug_root = HOST
        """Root in which the debug file was found."""
        self._table: SymbolTable | None = None
        self._go: GoFunctions | None = None
        """Go's own table, for what symbols do not name."""
        self._sought_go = False
        self._bounds: Bounds | None = None
        self._module: Module | None = None

    def is_mapped_in(self, root: Root) -> None:
        """A process with this root maps it. Who decides what is in the root of one process names no functions of
        others: once there are two roots, a debug file is only taken from ours."""
        if root in self._roots:
            return
        self._roots.add(root)
        if self._debug is not None and self._debug_root is not HOST:
            os.close(self._debug[1])
            self.descriptors.give_back_late()
            self._debug, self._sought = None, False
            self._forget_symbols()

    def is_mapped_in_all(self, other: ObjectFile) -> None:
        """Notes that the file is mapped wherever another object says so."""
        for root in other._roots:
            self.is_mapped_in(root)

    @property
    def is_open(self) -> bool:
        """Whether the file is held open, so that its content stays available."""
        return self._fd is not None

    def elf(self) -> ElfFile | None:
        """Headers of the file; None when it is gone, replaced or not a valid ELF file (see ``problem``)."""
        if self._elf is None and not self.problem:
            try:
                if self._fd is None:
                    self._fd = self._open_left()
                self._elf = ElfFile(FileSource(self._fd))
            except (OSError, ValueError) as error:
                self.problem = f"cannot be opened: {error}"
            except ElfError as error:
                self.problem = str(error)
        return self._elf

    def _open_left(self) -> int:
        if not self.descriptors.take_late():
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        try:
            return open_left(list(dict.fromkeys((self._root, HOST))), self._mapping, self._mapped_ns)
        except BaseException:
            self.descriptors.give_back_late()
            raise

    @property
    def module(self) -> Module:
        """The file's entry in the profile."""
        if self._module is None:
            elf = self.elf()
            build_id = self._mapping.build_id
            if elf is not None:
                try:
                    build_id = elf.build_id() or build_id
                except ElfError as error:
                    self.problem = str(error)
            self._module = Module(self.path, build_id, elf.code_end if elf else 0)
        return self._module

    def to_vaddrs(self, offsets: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """File offsets as ELF virtual addresses, and which are code; the offsets themselves without a file."""
        import numpy as np

        elf = self.elf()
        if elf is None:
            return offsets, np.zeros(len(offsets), bool)
        vaddrs, known = elf.to_vaddrs(offsets)
        return np.where(known, vaddrs, offsets), known

    def names(self, vaddrs: NDArray[np.uint64]) -> list[str | None]:
        """The raw name of the function at each virtual address, None where there is none."""
        table = self._symbols()
        if table is None:
            return [None] * len(vaddrs)
        unread = table.unread
        with self.readings.seconds.spent():
            found = table.find(vaddrs)
        if table.unread and not unread:
            self._leave_out_names()
        if None in found and (go := self._go_functions()) is not None:
            self._add_names(go, vaddrs, found)
        return found

    def _add_names(self, go: GoFunctions, vaddrs: NDArray[np.uint64], names: list[str | None]) -> None:
        """Adds the names that Go's table has to those of the symbols."""
        rows = [i for i, name in enumerate(names) if name is None]
        unread = go.unread
        with self.readings.seconds.spent():
            for i, name in zip(rows, go.find(vaddrs[rows]), strict=True):
                names[i] = name
        if go.unread and not unread:
            self._leave_out_names()

    def _leave_out_names(self) -> None:
        self.readings.leave_out(self.path, "their names are too long")

    def named(self, names: Collection[str]) -> dict[str, list[Symbol]]:
        """The function symbols with each raw name; see `SymbolTable.named`."""
        table = self._symbols()
        with suppress(ElfError):
            return table.named(names) if table is not None else {}
        return {}

    def starts(self, vaddrs: NDArray[np.uint64]) -> list[int | None]:
        """Addresses where the functions at these virtual addresses begin, by their unwind rules; None where there are
        none."""
        bounds = self._functions()
        return [None if i < 0 else int(bounds.start[i]) for i in bounds.holding(vaddrs).tolist()]

    @property
    def lacks_names(self) -> bool:
        """Whether it is stripped and has no debug file on this machine."""
        elf = self.elf()
        return elf is not None and not (has_symtab(elf) or self._debug_file())

    def lines_fd(self) -> int | None:
        """Descriptor, owned by this object, of the file that has its source lines; None when there is none."""
        elf = self.elf()
        if elf is None or has_lines(elf):
            return self._fd if elf is not None else None
        debug = self._debug_file()
        return debug[1] if debug is not None and has_lines(debug[0]) else None

    def add_debug_file(self, fd: int) -> bool:
        """Takes over an open file; whether it is its debug file, whose names are then used from now on."""
        found = verified(fd, self.module.build_id)
        if found is None:
            return False
        if self._debug is not None:
            os.close(self._debug[1])
        self._debug, self._debug_root, self._sought = found, HOST, True
        self._forget_symbols()
        return True

    def code_at(self, vaddr: int, size: int) -> bytes:
        """``size`` bytes of its code, b"" when there are none."""
        elf = self.elf()
        try:
            return elf.code_at(vaddr, size) if elf is not None else b""
        except ElfError:
            return b""

    def close(self) -> None:
        """Closes the descriptors. Names that were not requested are no longer available."""
        for fd in (self._fd, self._debug[1] if self._debug else None):
            if fd is not None:
                os.close(fd)
        self._fd = self._debug = None
        self.problem = self.problem or "closed"
        self._elf = None
        self._forget_symbols()

    def _forget_symbols(self) -> None:
        if self._table is not None:
            self.readings.symbols.give_back(self._table.size)
        if self._go is not None:
            self.readings.symbols.give_back(len(self._go))
        self._table = self._bounds = self._go = None
        self._sought_go = False

    def _symbols(self) -> SymbolTable | None:
        if self._table is None and self.elf() is not None:
            if self.readings.seconds.is_over:
                self._leave_out("those of other files took too much time")
                return None
            try:
                with reading(self.path), self.readings.seconds.spent():
                    self._table = self._load()
                self.readings.symbols.take(self._table.size)
            except TooMuch as error:
                self._leave_out(str(error))
            except ElfError as error:
                self.problem = str(error)
        return self._table

    def _go_functions(self) -> GoFunctions | None:
        """Go's own table, if it is a Go program without the symbols that name all functions."""
        elf = self.elf()
        if elf is not None and not self._sought_go and not self.readings.seconds.is_over:
            self._sought_go = True
            files = [elf, self._debug[0]] if self._debug is not None else [elf]
            if not any(map(has_symtab, files)):
                try:
                    with reading(self.path), self.readings.seconds.spent():
                        place = find_go_table(elf)
                        most = min(self.readings.symbols.left, MAX_SYMBOLS)
                        self._go = GoFunctions(elf.source, place, most) if place else None
                    self.readings.symbols.take(len(self._go or ()))
                except TooMuch as error:
                    self.readings.leave_out(self.path, str(error))
                except ElfError:
                    pass  # The runtime would not run with it.
        return self._go

    def _leave_out(self, why: str) -> None:
        self.problem = why
        self.readings.leave_out(self.path, why)

    def _load(self) -> SymbolTable:
        assert self._elf is not None
        files = [self._elf]
        if not has_symtab(self._elf):
            debug = self._debug_file()
            if debug is not None:
                files.append(debug[0])
            if debug is None or not has_symtab(debug[0]):
                files += _embedded(self._elf)
        most = min(self.readings.symbols.left, MAX_SYMBOLS)
        try:
            return SymbolTable(files, self._functions, most)
        except ElfError as error:
            if len(files) == 1:
                raise
            if isinstance(error, TooMuch):
                self.readings.leave_out(self.path, f"its debug file: {error}")
        # A damaged debug file must not cost the names that the program itself exports.
        return SymbolTable(files[:1], self._functions, most)

    def _debug_file(self) -> tuple[ElfFile, int] | None:
        if not self._sought and self._elf is not None:
            self._sought = True
            if self.descriptors.take_late():
                with suppress(ElfError):
                    self._debug = self._found_debug_file(self._elf)
                if self._debug is None:
                    self.descriptors.give_back_late()
        return self._debug

    def _found_debug_file(self, elf: ElfFile) -> tuple[ElfFile, int] | None:
        for root in dict.fromkeys((self._root, HOST)) if len(self._roots) == 1 else (HOST,):
            if self._fd is not None and (found := find_debug_file(elf, self._fd, self.path, root)):
                self._debug_root = root
                return found
        return None

    def _functions(self) -> Bounds:
        elf = self.elf()
        if self._bounds is None:
            self._bounds = Bounds.none()
            if elf is not None:
                with suppress(ElfError, UnwindError):
                    self._bounds = Bounds(*function_bounds(elf, self._debug[0] if self._debug else None))
        return self._bounds


def _embedded(elf: ElfFile) -> list[ElfFile]:
    try:
        embedded = elf.embedded()
    except ElfError:
        return []
    return [embedded] if embedded is not None else []
