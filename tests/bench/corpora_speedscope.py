"""speedscope's sample profiles: functions and their times beside the snapshots of its own imports."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from corpora import Comparison
from stallscope.converters import pprof
from stallscope.converters.convert import main as convert
from stallscope.converters.model import Profile
from stallscope.converters.names.demangle import Demangler

_GROUP = re.compile(r"describe\('([^']+)'")
_CASE = re.compile(r"test\(\s*['`]([^'`]+)['`](?:(?!test\().)*?checkProfileSnapshot\(\s*'\./([^']+)'", re.DOTALL)
_SNAPSHOT = re.compile(r"^exports\[`([^`]*?) \d+`\] = `\n(.*?)\n`;$", re.MULTILINE | re.DOTALL)
_FRAME = re.compile(r'"name": "(.*)",\n\s*"selfWeight": ([\d.e+-]+),\n\s*"totalWeight": ([\d.e+-]+),')
_ARGUMENTS = re.compile(r" \{.*\}$")
_MODULE = re.compile(r"\?\?\? \((.*)\)$")
_OTHER_FILES = (".grammar", ".map", ".md", ".ts", ".js")
_NAMED = re.compile(r", which is not read$|is not speedscope's JSON: (?:profile|event) \d+", re.MULTILINE)
_INSIDE = "an end ends what was called, too; theirs waits for the ends of that"
REASONS: dict[str, tuple[str, dict[str, float]]] = {
    "trace-event/bex-interaction.json": (
        "two calls begin and end together: either may be the caller",
        {"C": 0, "D": 2},
    ),
    "trace-event/end-non-top-of-stack.json": (
        "theirs takes no end whose arguments differ from those of the begin",
        {"A": 1, "B": 9, "Z": 1},
    ),
    "trace-event/invalid-x-nesting.json": (
        "theirs prolongs the first of two calls that overlap",
        {"alpha": 5, "beta": 10},
    ),
    "trace-event/mismatched-name.json": ("theirs lets a begin without an end last for no time", {"alpha": 10}),
    "trace-event/out-of-order-unbalanced-name.json": (_INSIDE, {"alpha": 1, "beta": 8}),
    "trace-event/unbalanced-name.json": (_INSIDE, {"alpha": 1, "beta": 8}),
}
"""Sample → why its times cannot be the same, and what some of ours have to be: each function's own."""
WEIGHTS = "theirs weighs samples of perf by the time between them: the functions are the same"


class Times(NamedTuple):
    """Times of one function, by its name. ``total`` is 0 where several functions have that name."""

    own: float
    total: float


def speedscope(folder: Path) -> Iterator[Comparison]:
    """Every sample: right, or refused by name."""
    home = folder / "sample" / "profiles"
    expected = dict(_snapshots(folder))
    for path in sorted(path for path in home.rglob("*") if path.is_file() and not path.name.startswith(".")):
        name = str(path.relative_to(home))
        if path.suffix in _OTHER_FILES:
            continue
        profile, said = _ours(path)
        if profile is None:
            told = said.partition(": ")[2].partition("\n")[0].replace(str(path), path.name)
            yield Comparison(name, _NAMED.search(said) is not None, "refused by name", told)
        elif path not in expected:
            yield Comparison(name, True, "read; speedscope has no snapshot of it")
        else:
            yield _compared(name, profile, expected[path])


def _snapshots(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Sample and the profiles that speedscope makes of it."""
    for test in sorted((folder / "src" / "import").glob("*.test.ts")):
        snapshot = test.parent / "__snapshots__" / f"{test.name}.snap"
        bodies: dict[str, list[str]] = defaultdict(list)
        for name, body in _SNAPSHOT.findall(snapshot.read_text()) if snapshot.exists() else ():
            bodies[name].append(body)
        text = test.read_text()
        group = _GROUP.search(text)
        for name, path in _CASE.findall(text):
            key = name if name in bodies or group is None else f"{group[1]} {name}"
            if key in bodies:
                yield folder / path, bodies[key]


def _ours(path: Path) -> tuple[Profile | None, str]:
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
        out = Path(folder, "out.pb.gz")
        if convert([str(path), "-o", str(out)]):
            return None, said.getvalue().strip()
        with out.open("rb") as file:
            return pprof.load(file), said.getvalue().strip()


def _compared(name: str, profile: Profile, bodies: list[str]) -> Comparison:
    theirs, ours = _theirs(bodies), _times(profile)
    if name.startswith("linux-perf/"):
        return Comparison(name, theirs.keys() == ours.keys(), WEIGHTS, f"{sorted(theirs.keys() ^ ours.keys())[:3]}")
    different = [each for each in sorted(theirs.keys() | ours.keys()) if not _same(theirs.get(each), ours.get(each))]
    told = "; ".join(f"{each!a}: theirs {theirs.get(each)}, ours {ours.get(each)}" for each in different[:2])
    if not different or name not in REASONS:
        return Comparison(name, not different, "", told)
    reason, own = REASONS[name]
    return Comparison(name, {each: ours[each].own for each in own} == own, reason, told)


def _same(one: Times | None, other: Times | None) -> bool:
    if one is None or other is None:
        return False
    totals = not one.total or not other.total or abs(one.total - other.total) <= 1e-3 * one.total
    return totals and abs(one.own - other.own) <= 1e-3 * max(one.own, 1)


def _theirs(bodies: list[str]) -> dict[str, Times]:
    """Times without the arguments that speedscope adds to names, and with our names for unknown functions."""
    own: dict[str, float] = defaultdict(float)
    total: dict[str, float] = defaultdict(float)
    count: Counter[str] = Counter()
    for body in bodies:
        seen = Counter()
        for name, itself, everything in _FRAME.findall(body.replace("\\\\", "\\").replace("\\`", "`")):
            if float(everything) or float(itself):
                name = _shown(name.replace('\\"', '"'))
                own[name] += float(itself)
                total[name] += float(everything)
                seen[name] += 1
        count |= seen
    return {name: Times(own[name], total[name] if count[name] == 1 else 0) for name in own}


def _shown(name: str) -> str:
    name = _ARGUMENTS.sub("", name)
    if module := _MODULE.match(name):
        base = module[1].rpartition("/")[2]
        name = "[unknown]" if base == "[unknown]" else f"[{base}]"
    readable = Demangler().demangle([name])[name]
    return "[unknown]" if name == "(unnamed)" else readable.partition("(")[0] if readable != name else name


def _times(profile: Profile) -> dict[str, Times]:
    names = [value_type.name for value_type in profile.value_types]
    column = names.index(profile.default_value) if profile.default_value else 0
    scale = 1000 if profile.value_types[column].unit == "nanoseconds" and "cpu" not in names else 1
    own: dict[str, float] = defaultdict(float)
    total: dict[str, float] = defaultdict(float)
    for sample in profile.samples:
        weight = sample.values[column] / scale
        for name in {frame.name for frame in sample.stack}:
            total[name] += weight
        if sample.stack:
            own[sample.stack[-1].name] += weight
    return {name: Times(own[name], amount) for name, amount in total.items() if amount}
