"""Nothing looks into sentences: what one module words, no other one compares with, searches in or strips."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOOKED_INTO = (
    *(f"converters/{folder}" for folder in ("facts", "rules", "summary", "phrases", "model", "pprof", "anonymous")),
    *("converters/convert.py", "converters/transform_options.py", "tracers"),
)
SENTENCE = re.compile(r"[A-Za-z']{2,} [a-z']{2,}")
"""Two words, as only a sentence has them."""
MATCHING = frozenset(
    (
        *("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit"),
        *("replace", "find", "rfind", "index", "count", "match", "fullmatch", "search", "finditer", "findall", "sub"),
    )
)

_PLACES = "a name in place of functions, which frames have"
_PERF, _STAP, _KERNEL = "what perf prints", "what SystemTap prints", "what the kernel's verifier or libbpf prints"
_CODE = "an instruction, as the disassembler prints it"
_KINDS = "kinds of losses, compared as a whole: keys that one constant names"
_ENDS = "reasons why stacks end, compared as a whole: an enumeration that one constant names"
_ITSELF = "a text of the same module"
_PUBLIC = "words of ours that name nobody: all others get pseudonyms"
ALLOWED = {
    "converters/anonymous/pseudonyms.py": _PUBLIC,
    "converters/anonymous/public.py": _PUBLIC,
    "converters/facts/frame_names.py": "C++",
    "converters/facts/ownership.py": "names of functions of Java",
    "converters/facts/signal_handlers.py": "the name that GDB gives to a frame",
    "converters/facts/wait_causes.py": _PLACES,
    "converters/facts/wakers.py": _PLACES,
    "converters/rules/verdict.py": _PLACES,
    "converters/summary/few_samples.py": _PLACES,
    "converters/phrases/words.py": "keys of tables of words: kinds",
    "converters/model/losses.py": "the module that makes these keys reads them",
    "tracers/cpython/layouts.py": "names of fields",
    "tracers/command/target_list.py": _ITSELF,
    "tracers/engines/bcc/programs.py": _KERNEL,
    "tracers/engines/ebpf/completing.py": _ENDS,
    "tracers/engines/ebpf/remarks.py": _ENDS,
    "tracers/engines/ebpf/stacks.py": _ENDS,
    "tracers/engines/ebpf/measures/event_probes.py": _ITSELF,
    "tracers/engines/eu_stack/access.py": _ITSELF,
    "tracers/engines/perf/reasons.py": _PERF,
    "tracers/engines/perf/recording.py": _PERF,
    "tracers/engines/perf/threads.py": _KINDS,
    "tracers/engines/stap/compiling.py": _STAP,
    "tracers/engines/stap/module_file.py": _STAP,
    "tracers/engines/stap/threads.py": _PLACES,
    "tracers/kernel/libbpf.py": _KERNEL,
    "tracers/symbols/symboliser.py": _KINDS,
    "tracers/unwind/flow.py": _CODE,
    "tracers/unwind/frames.py": _CODE,
    "tracers/unwind/jumptables.py": _CODE,
    "tracers/unwind/prologues.py": _CODE,
    "tracers/unwind/rows.py": "a list of reasons, of which the length is asked",
}
"""Modules that match a text with two words, and what that is."""


def modules() -> Iterator[Path]:
    for place in LOOKED_INTO:
        path = ROOT / place
        yield from [path] if path.suffix else sorted(path.rglob("*.py"))


def constants(tree: ast.Module) -> dict[str, list[str]]:
    """Texts in the values of a module's names."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
            found |= {name: [*texts(node.value, {})] for name in names}
    return found


def texts(node: ast.AST, named: dict[str, list[str]]) -> Iterator[str]:
    for leaf in ast.walk(node):
        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
            yield leaf.value
        elif isinstance(leaf, ast.Name):
            yield from named.get(leaf.id, ())


def matched(source: str) -> set[str]:
    """Texts with two words that a module compares with, searches in others, or strips."""
    tree = ast.parse(source)
    named = constants(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MATCHING:
            parts = [*node.args, node.func.value]
        found |= {text for part in parts for text in texts(part, named) if SENTENCE.search(text)}
    return found


@pytest.mark.parametrize(
    "source",
    [
        "x = 'tells where' in comment",
        "TEXT = 'tells where'\nx = comment.endswith(TEXT)",
        "import re\nTEXT = re.compile('a (tells where|b)')\nx = TEXT.match(comment)",
        "x = comment.removesuffix('tells where')",
        "x = [step for step in steps if step.tells == 'who ends']",
    ],
)
def test_a_sentence_that_is_matched_is_found(source: str) -> None:
    assert matched(source)


@pytest.mark.parametrize("source", ["x = f'{a} tells where'", "x = a == 'tells'", "x = say('tells where')"])
def test_other_texts_are_not(source: str) -> None:
    assert not matched(source)


def test_nothing_looks_into_sentences() -> None:
    found = {str(path.relative_to(ROOT)): matched(path.read_text()) for path in modules()}
    wrong = {path: texts_ for path, texts_ in found.items() if texts_ and path not in ALLOWED}
    assert wrong == {}


def test_what_is_allowed_is_still_there() -> None:
    assert [path for path in ALLOWED if not matched((ROOT / path).read_text())] == []
