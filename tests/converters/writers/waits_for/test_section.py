"""The wait-for graph in the HTML page."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET

from stallscope.converters.model import Profile, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.html import writer
from stallscope.converters.writers.waits_for.section import section
from wait_graphs import chained, profile_of


def drawn(profile: Profile) -> ET.Element:
    return ET.fromstring(section(profile, WriteOptions()))


def test_edges_and_rows() -> None:
    found = drawn(profile_of(chained(7, 7, 5, ("disk-9", 9, "r")), chained(9, 9, 15, ("app-7", 7, "a"))))
    (knot, other) = (path for path in found.iter("path") if path.get("class") == "knot")
    assert knot.get("stroke-width") != other.get("stroke-width")
    assert [title.text for title in found.iter("title")][:2] == [
        "app-7 waits for disk-9: 5 ns, 25.0 % of all",
        "disk-9 waits for app-7: 15 ns, 75.0 % of all",
    ]
    rows = [[cell.text for cell in row] for row in found.iter("tr")]
    assert rows[1:] == [["15 ns", "15 ns", "75.0 %", "disk-9", "app-7"], ["5 ns", "5 ns", "25.0 %", "app-7", "disk-9"]]
    assert len(list(found.iter("circle"))) == 2


def test_hostile_names_are_text() -> None:
    name = "</details><script>alert(1)</script>\x1b\u202e\"'"
    text = section(profile_of(chained(7, 7, 5, (f"{name}-9", 9, name), process=name)), WriteOptions())
    assert "<script" not in text
    assert "\x1b" not in text
    ET.fromstring(text)


def test_very_many_fit_on_the_circle() -> None:
    found = drawn(profile_of(*(chained(7, 7, 50, (f"p-{100 + i}", 100 + i, "t")) for i in range(60))))
    assert len(list(found.iter("circle"))) <= 24
    assert len(list(found.iter("tr"))) <= 41


def test_only_where_wakers_are_known() -> None:
    profile = Profile([ValueType("off-cpu", "nanoseconds")])
    assert section(profile, WriteOptions()) == ""
    file = io.BytesIO()
    writer.write(profile_of(chained(7, 7, 5, ("disk-9", 9, "r"))), file, WriteOptions())
    assert file.getvalue().count(b'<details id="waitsfor">') == 1
