"""SVG texts of small profiles, and what is drawn in them."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from typing import Any

from stallscope.converters.model import Frame, Labels, Module, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.svg import writer as svg

SVG = "{http://www.w3.org/2000/svg}"
TYPES = [ValueType("off-cpu", "nanoseconds"), ValueType("count", "count"), ValueType("longest", "nanoseconds", "max")]
LABELS: Labels = (("pid", 7), ("process", "job"), ("thread", "worker"), ("tid", 8))


def sample(value: int, *names: str, count: int = 1) -> Sample:
    """Sample of process job-7; ``names`` are those of its frames, the outermost first."""
    return Sample(tuple(Frame(name, "native", Module("/lib/libc.so.6")) for name in names), (value, count, 0), LABELS)


def profile(*samples: Sample, **fields: Any) -> Profile:
    """A profile with these samples; ``fields`` are its other ones."""
    return Profile(TYPES, list(samples), **fields)


def text_of(data: Profile, **options: Any) -> str:
    """The whole file, as it is written with these options."""
    file = io.BytesIO()
    svg.write(data, file, WriteOptions(**options))
    return file.getvalue().decode("utf-8")


def rects(root: ET.Element) -> list[ET.Element]:
    """The boxes of the frames."""
    return root.findall(f".//{SVG}g[@id='frames']/{SVG}rect")


def names(root: ET.Element) -> list[str]:
    """Names of the boxes."""
    return [(rect.findtext(f"{SVG}title") or "").split("\n")[0] for rect in rects(root)]


def lines(root: ET.Element, css: str = "line") -> list[str]:
    """The lines of text around the graph that have this class."""
    return [element.text or "" for element in root.findall(f".//{SVG}g[@id='page']/{SVG}text[@class='{css}']")]


COMPARED = Profile(
    [ValueType("after", "nanoseconds"), ValueType("before", "nanoseconds")],
    [
        Sample((Frame("main"), Frame("grown")), (1_500, 1_000)),
        Sample((Frame("main"), Frame("gone")), (0, 700)),
        Sample((Frame("main"), Frame("new")), (500, 0)),
        Sample((Frame("main"),), (100, 400)),
    ],
)
