"""Simplifies names, so that more are equal: template arguments, numbers of lambdas, addresses, numbers of threads."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Literal, get_args

from ..model import Frame, Labels, Profile, Sample, parts
from ..names.cxx import without_arguments
from .samples import ByFrame, with_samples

What = Literal["templates", "lambdas", "addresses", "numbers"]
KINDS: tuple[What, ...] = get_args(What)

_ANGLE = re.compile(r"(?P<operator>(?<![\w$])operator\s*(?:\(\)|<=>|<<=?|>>=?|->\*?|[<>]=?|[-+*/%^&|~!=,]+))|->|[<>()]")
"""Tokens that matter for template arguments; an angle in the name of an operator opens and closes nothing."""
_IDENTIFIER_END = re.compile(r"[\w$\]]")
_LAMBDA = re.compile(r"#\d+(?=\})|(?<='lambda)\d+(?=')|(?<='unnamed)\d+(?=')|(?<=\$_)\d+")
_ADDRESS = re.compile(r"\b0[xX][0-9a-fA-F]+|(?<= <)[0-9a-f]+(?=>\]\Z)")
_COUNTED = re.compile(r"(?<=\w)#\d+(?![\w}])")
"""Excludes numbers of lambdas, which are in braces."""
_NUMBER = re.compile(r"(?<=[-_/:# ])\d+")


def simplify(profile: Profile, what: Collection[What]) -> Profile:
    """Simplifies names:

    - ``templates``: ``std::vector<int, A<int> >::at`` becomes ``std::vector<…>::at``; what is no template argument
      (``<lambda>``, ``operator<<``, ``<T as Trait>::f``) stays; kernels of GPUs lose their argument lists, too;
    - ``lambdas``: the numbers in ``{lambda(int)#2}``, ``{closure#0}``, ``'lambda1'`` and ``$_3`` become ``N`` or go;
    - ``addresses``: ``0x1a2b`` in a name becomes ``0x…``, and frames lose their addresses: call sites of a function
      become one;
    - ``numbers``: ``worker-12`` becomes ``worker-N`` in the names of threads and processes (samples and accounts), and
      ``ProfilerStep#12`` ``ProfilerStep#N`` in those of functions.
    """
    steps = [step for kind, step in _STEPS.items() if kind in what]
    drops_arguments = "templates" in what
    known: dict[Frame, Frame] = {}

    def simpler(frame: Frame) -> Frame:
        name = frame.name
        for step in steps:
            name = step(name)
        if drops_arguments and frame.kind == "other":
            name = _without_arguments(name)
        changed = frame._replace(name=name, address=0 if "addresses" in what else frame.address)
        return known.setdefault(changed, changed)

    frame_of = ByFrame(simpler).__getitem__
    labels_of = _Labels() if "numbers" in what else None
    samples = [
        Sample(tuple(map(frame_of, stack)), values, labels if labels_of is None else labels_of[labels])
        for stack, values, labels in profile.samples
    ]
    changed = with_samples(profile, samples)
    if labels_of is not None:
        names = dict.fromkeys((parts.PROCESS, parts.THREAD), _without_numbers)
        changed = replace(changed, **parts.renamed(profile, names))
    return changed


class _Labels(dict[Labels, Labels]):
    """Labels → labels with simpler names."""

    def __missing__(self, labels: Labels) -> Labels:
        changed = self[labels] = tuple(
            (key, _without_numbers(value) if key in ("process", "thread") and isinstance(value, str) else value)
            for key, value in labels
        )
        return changed


def _without_numbers(name: str) -> str:
    return _NUMBER.sub("N", name)


def _without_counts(name: str) -> str:
    return _COUNTED.sub("#N", name)


def _without_arguments(name: str) -> str:
    """``void f<…>`` of ``void f<…>(int, float*)``; names with a space before the parenthesis are not C++."""
    rest = name[len(short := without_arguments(name.encode(errors="surrogatepass")).decode(errors="surrogatepass")) :]
    return short if rest.startswith("(") and short[-1:].strip("( ") else name


def _without_addresses(name: str) -> str:
    return _ADDRESS.sub(lambda match: "0x…" if match[0][:2] in ("0x", "0X") else "…", name)


def _without_lambda_numbers(name: str) -> str:
    return _LAMBDA.sub(lambda match: "#N" if match[0][0] == "#" else "", name)


def _without_templates(name: str) -> str:
    if "<" not in name:
        return name
    pieces: list[str] = []
    taken = 0
    for start, end in _template_arguments(name):
        pieces += (name[taken:start], "<…>")
        taken = end
    return "".join(pieces) + name[taken:]


def _template_arguments(name: str) -> Iterator[tuple[int, int]]:
    """Start and end of the outermost template arguments, angles included."""
    open_: list[tuple[str, int]] = []
    operator_end = 0
    for match in _ANGLE.finditer(name):
        token, place = match[0], match.start()
        if match["operator"]:
            operator_end = match.end()
        elif token == "<":
            if open_ or _opens(name, place, operator_end):
                open_.append((token, place))
        elif token == "(" and open_:
            open_.append((token, place))
        elif token == ")":
            # A < that is still open in these parentheses means "less than".
            while open_ and open_.pop()[0] == "<":
                pass
        elif token == ">" and open_ and open_[-1][0] == "<":
            _, start = open_.pop()
            if not open_:
                yield start, match.end()


def _opens(name: str, place: int, operator_end: int) -> bool:
    """Whether template arguments begin here: after an identifier, or after an operator's name and a space."""
    if operator_end and name[operator_end:place].strip() == "":
        return True
    return place > 0 and _IDENTIFIER_END.match(name, place - 1) is not None


_STEPS: dict[str, Callable[[str], str]] = {
    "templates": _without_templates,
    "lambdas": _without_lambda_numbers,
    "addresses": _without_addresses,
    "numbers": _without_counts,
}
