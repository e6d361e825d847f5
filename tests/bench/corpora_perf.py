"""FlameGraph's and inferno's recordings of perf: our folded text beside stackcollapse-perf.pl's and inferno's."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from corpora import Comparison, difference, folded, weights
from stallscope.converters.names.cxx import without_arguments
from stallscope.converters.names.demangle import Demangler

FLAMEGRAPH_OPTIONS = ("--pid", "--tid", "--kernel", "--jit", "--all", "--addrs")
"""Options of FlameGraph's own tests (record-test.sh)."""
NO_END = "their script drops a last sample that no empty line follows"
MANGLED = "their script leaves names mangled"
BLANK = "their script has a blank for a function without a name"
VDSO = "their script takes the vdso for the kernel"
_MARK = re.compile(r"_\[\w\]\Z")
Change = Callable[[Counter[str]], Counter[str]]


def _replaced(*pairs: tuple[str, str]) -> Change:
    """Change of the frames of their result."""

    def change(lines: Counter[str]) -> Counter[str]:
        for old, new in pairs:
            lines = Counter({stack.replace(old, new): weight for stack, weight in lines.items()})
        return lines

    return change


_VDSO_IS_USER = _replaced(("__vdso_gettimeofday_[k]", "__vdso_gettimeofday"), ("[[vdso]]_[k]", "[[vdso]]"))


def name_blanks(text: bytes) -> bytes:
    """perf script's text with [unknown] for symbols that are blank."""
    return re.sub(rb"(?m)^(\s*[0-9a-f]+)  \(", rb"\1 [unknown] (", text)


def flamegraph(folder: Path) -> Iterator[Comparison]:
    """Compares FlameGraph's recordings with each option: beside what its script prints today, some of its stored
    results being older."""
    for path in sorted((folder / "test").glob("perf-*.txt")):
        for option in FLAMEGRAPH_OPTIONS:
            ours, _ = folded(path, option)
            name = f"{path.name} {option}"
            reasons = []
            text = path.read_bytes()
            theirs = _script(folder, option, text)
            for reason, mend in ((NO_END, lambda text: text + b"\n\n"), (BLANK, name_blanks)):
                if ours != theirs:
                    text = mend(text)
                    mended = _script(folder, option, text)
                    reasons += [reason] * (mended != theirs)
                    theirs = mended
            for reason, change in (
                (VDSO, _VDSO_IS_USER),
                (MANGLED, _demangled),
            ):
                if ours != theirs and (changed := change(theirs)) != theirs:
                    reasons.append(reason)
                    theirs = changed
            yield Comparison(name, ours == theirs, " and ".join(reasons), difference(ours, theirs))


def _script(folder: Path, option: str, text: bytes) -> Counter[str]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        command = ["perl", str(folder / "stackcollapse-perf.pl"), option, file.name]
        return weights(subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace"))


def _demangled(lines: Counter[str]) -> Counter[str]:
    names = {name: _MARK.sub("", name) for stack in lines for name in stack.split(";")}
    readable = Demangler().demangle(names.values())
    shown = {}
    for name, bare in names.items():
        changed = readable[bare] != bare
        shown[name] = without_arguments(readable[bare].encode()).decode() + name[len(bare) :] if changed else name
    sums: Counter[str] = Counter()
    for stack, weight in lines.items():
        sums[";".join(shown[name] for name in stack.split(";"))] += weight
    return sums


def _first_event(lines: Counter[str]) -> Counter[str]:
    return Counter({"false;[unknown]": lines["false;[unknown]"]})


ESCAPE = (
    "theirs keeps the underscore that only protects an escape (rustc's demangler drops it)",
    _replaced(("::_{{", "::{{"), ("::_<", "::<")),
)
REASONS: dict[str, tuple[str, Change]] = {
    "cpp-stacks-std-function": ("theirs cuts operator() to operator", _replaced(("::operator;", "::operator();"))),
    "no-events": ("an empty input is an error", lambda lines: lines),
    "perf-rust-Yamakaky-dcpu": ESCAPE,
    "single-event": ESCAPE,
    "single-line-stacks": ("theirs adds up different events (cycles:u and cycles)", _first_event),
    "versioned-vmlinux": (
        "theirs takes a BPF program for user code",
        _replaced(("bpf_prog_2b956549c660136a_uni_l4lb", "bpf_prog_2b956549c660136a_uni_l4lb_[k]")),
    ),
}
"""Recording → why inferno's result is not right, and what makes it ours."""


def inferno(folder: Path) -> Iterator[Comparison]:
    """Compares inferno's results for perf. Those of FlameGraph's recordings need its submodule ``flamegraph``, or
    $FLAMEGRAPH."""
    home = folder / "tests" / "data" / "collapse-perf"
    for result in sorted((home / "results").glob("*.txt")):
        stem, _, options = result.stem.partition("-collapsed")
        path = _recording(folder, stem)
        if path is None:
            yield Comparison(result.name, False, "", f"no recording {stem}: is the submodule there?")
            continue
        ours, said = folded(
            path, "--from", "perf", *(f"--{option}" for option in options.strip("-").split("+") if option)
        )
        theirs = weights(result.read_text())
        reason = ""
        if (ours != theirs or not theirs) and stem in REASONS:
            reason, change = REASONS[stem]
            theirs = change(theirs)
        same = ours == theirs and bool(ours or "has no samples" in said)
        yield Comparison(result.name, same, reason, difference(ours, theirs))


def _recording(folder: Path, stem: str) -> Path | None:
    other = os.environ.get("FLAMEGRAPH", "")
    homes = [folder / "tests" / "data" / "collapse-perf", folder / "flamegraph", folder / "flamegraph" / "test"]
    homes += [Path(other), Path(other, "test")] if other else []
    paths = (home / f"{stem}{suffix}" for home in homes for suffix in (".txt", ".txt.gz"))
    return next((path for path in paths if path.is_file()), None)
