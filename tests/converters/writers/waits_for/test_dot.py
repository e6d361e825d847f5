"""DOT that graphviz reads, whatever names are."""

from __future__ import annotations

import io
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest
from stallscope.converters.model import Profile
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.waits_for import dot
from wait_graphs import chained, profile_of

HOSTILE = ['"]; bad [label="x', "a\\", "\\N\\n", "<b>x</b>", "x\x1b[2J\n}", "a -> b", "\u202eevil", "\udcff", "é", ""]


def written(profile: Profile) -> str:
    file = io.BytesIO()
    dot.write(profile, file, WriteOptions())
    return file.getvalue().decode()


def test_text() -> None:
    text = written(profile_of(chained(7, 7, 3_000_000, ("disk-9", 10, "reader")), chained(7, 7, 9, ("[timer]", 0, ""))))
    assert text.startswith("digraph waits_for {\n")
    assert '  "thread 7/7" [label="app-7\\nblocked 3.00 ms", shape=box' in text
    assert '  "thread 9/10" [label="disk-9/reader-10\\nblocks 3.00 ms", shape=box' in text
    assert '"thread 7/7" -> "thread 9/10" [label="3.00 ms >99.9 %", penwidth=8.00' in text
    assert "waited_ns=3000000, passed_on_ns=3000000];" in text
    assert '"timer [timer]" [label="[timer]\\nblocks 9 ns", shape=ellipse' in text


def test_knots_are_marked() -> None:
    text = written(profile_of(chained(7, 7, 5, ("disk-9", 9, "r")), chained(9, 9, 5, ("app-7", 7, "a"))))
    assert text.count('color="#b3261e"') == 4


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name: str, require: Callable[[bool, str], None]) -> None:
    require(shutil.which("dot") is not None, "graphviz is not installed")
    profile = profile_of(chained(7, 7, 5, (f"{name}-9", 10, name), process=name))
    profile.title = name or "t"
    done = subprocess.run(["dot", "-Tsvg"], input=written(profile).encode(), capture_output=True, check=True)
    drawn = ET.fromstring(done.stdout)
    of_class = [each.get("class") for each in drawn.iter("{http://www.w3.org/2000/svg}g")]
    assert (of_class.count("node"), of_class.count("edge")) == (2, 1)
    assert b"\x1b" not in done.stdout


def test_strings() -> None:
    assert dot.quoted('a"b\\') == '"a\\"b\\\\"'
    assert dot.labelled("<b>&lt;") == '"<b>&amp;lt;"'
