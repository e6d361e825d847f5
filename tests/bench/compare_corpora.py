"""trace-convert beside what other projects expect of their own test data.

    compare_corpora.py [--flamegraph FOLDER] [--inferno FOLDER] [--speedscope FOLDER] [--pprof FOLDER] [--traces FOLDER]

Each folder is a checkout of that project, or a folder of PyTorch's traces; also $FLAMEGRAPH, $INFERNO, … Without one
its part is left out, and told. Where we differ on purpose, the reason stands here, with what has to be done to their
result (or their input) to make the two equal: so a difference that is explained is checked, too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import corpora_perf
import corpora_pprof
import corpora_speedscope
import corpora_traces
from corpora import Comparison

PARTS: dict[str, Callable[[Path], Iterator[Comparison]]] = {
    "flamegraph": corpora_perf.flamegraph,
    "inferno": corpora_perf.inferno,
    "speedscope": corpora_speedscope.speedscope,
    "pprof": corpora_pprof.pprof,
    "traces": corpora_traces.traces,
}
"""Project → what compares its data."""


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in PARTS:
        parser.add_argument(f"--{name}", default=os.environ.get(name.upper(), ""), metavar="FOLDER")
    given = vars(parser.parse_args())
    if given["flamegraph"]:
        os.environ["FLAMEGRAPH"] = given["flamegraph"]  # inferno has some of its recordings from there
    failed = 0
    for name, compare in PARTS.items():
        if not given[name]:
            print(f"{name}: not compared: --{name} FOLDER (or {name.upper()}=FOLDER) says where its files are")
            continue
        comparisons = list(compare(Path(given[name])))
        equal = [each for each in comparisons if each.equal and not each.reason]
        explained = [each for each in comparisons if each.equal and each.reason]
        wrong = [each for each in comparisons if not each.equal]
        print(
            f"{name}: {len(comparisons)} compared, {len(equal)} equal, {len(explained)} equal but for a reason,"
            f" {len(wrong)} different",
            flush=True,
        )
        for reason in dict.fromkeys(each.reason for each in explained):
            names = [each.name for each in explained if each.reason == reason]
            print(f"    {len(names)}: {reason}: {', '.join(names[:3])}{' …' if len(names) > 3 else ''}")
        for each in wrong:
            print(f"    different: {each.name}: {each.told}")
        failed += len(wrong) or not comparisons
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
