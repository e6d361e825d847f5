"""Branches of our modules that a run has taken: the modules are compiled with a mark at the begin of each block.

A mark is one assignment, so that instrumented code takes little more time than before. `install` comes before the first
import of what is to be watched.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType

MARKS = "__fuzz_marks__"
_MOST = 1 << 15
marks = bytearray(_MOST)
"""One byte for each block; 1: it has been entered since `clear`."""
_EMPTY = bytes(_MOST)
_count = 0


def clear() -> None:
    """Forgets what was entered."""
    marks[:] = _EMPTY


def taken() -> int:
    """The blocks entered since `clear`, as a number of 8 bits for each."""
    return int.from_bytes(marks, "little")


def install() -> None:
    """Instruments the modules of stallscope, and of pyelftools, that are imported from now on."""
    setattr(builtins, MARKS, marks)
    sys.meta_path.insert(0, _Finder())


class _Marker(ast.NodeTransformer):
    """Puts a mark at the begin of each function, branch, loop and handler."""

    def _marked(self, body: list[ast.stmt]) -> list[ast.stmt]:
        global _count
        number, _count = _count % _MOST, _count + 1
        mark = ast.parse(f"{MARKS}[{number}] = 1").body[0]
        first = body[0]
        for node in ast.walk(mark):
            if isinstance(node, (ast.expr, ast.stmt)):
                ast.copy_location(node, first)
        is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return [first, mark, *body[1:]] if is_text else [mark, *body]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        kinds = (ast.FunctionDef, ast.If, ast.For, ast.While, ast.ExceptHandler, ast.Try, ast.match_case)
        if isinstance(node, kinds):
            node.body = self._marked(node.body)
            if getattr(node, "orelse", None):
                node.orelse = self._marked(node.orelse)
        return node


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compiles a module, without the cache of compiled files."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data: bytes, path: str, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree = ast.fix_missing_locations(_Marker().visit(ast.parse(data, path)))
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(("stallscope.", "elftools.")):
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            found = finder.find_spec(fullname, path, target)
            if found is not None:
                if isinstance(found.loader, importlib.machinery.SourceFileLoader):
                    found.loader = _Loader(found.loader.name, found.loader.path)
                return found
        return None
