"""The wait-for graph in the HTML page: a drawing and a table, without a script."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...base.text import shortened
from ...base.units import duration, share
from ...model import Profile
from ...model.waits_for import PROCESS, has_wakers
from ..base.options import WriteOptions
from ..svg.text import markup
from .graph import Arrow, Picture, Point, picture, several_processes

_NODES = 24
"""Number of nodes that fit on a circle: those of the widest edges."""
_WIDTH, _HEIGHT, _RADIUS = 900, 620, 240
_ROWS = 40
_WIDEST = 9.0
_LABEL = 34
"""Characters of a name in the drawing."""
_BEND = 0.18
"""Bend of an edge, in terms of its length: so that one there and one back are two."""


def section(profile: Profile, options: WriteOptions) -> str:
    """HTML; "" if the profile does not tell who ended waits."""
    if not has_wakers(profile):
        return ""
    by = PROCESS if several_processes(profile) else options.by
    made = picture(profile, replace(options, by=by), drawn=True)
    if not made.arrows:
        return ""
    return "".join(
        (
            '<details id="waitsfor"><summary>Who waits for whom</summary>\n',
            f"<p>{markup(made.subtitle())}. An edge leads from who waited to who was waited for.</p>\n",
            *_drawing(made),
            *_table(made),
            "</details>\n",
        )
    )


def _drawing(made: Picture) -> Iterator[str]:
    points = {point.id: point for point in made.points}
    chosen: dict[str, tuple[float, float]] = {}
    for arrow in made.arrows:
        if len({*chosen, arrow.source, arrow.target}) <= _NODES:
            chosen |= {arrow.source: (0, 0), arrow.target: (0, 0)}
    for i, name in enumerate(sorted(chosen, key=lambda name: (points[name].kind, points[name].name))):
        angle = 2 * math.pi * i / len(chosen) - math.pi / 2
        chosen[name] = (_WIDTH / 2 + _RADIUS * math.cos(angle), _HEIGHT / 2 + _RADIUS * math.sin(angle))
    most = max(arrow.passed_on or arrow.waited for arrow in made.arrows)
    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Who waits for whom">\n'
    yield '<marker id="tip-of-edge" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
    yield 'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>\n'
    for arrow in reversed(made.arrows):
        if arrow.source != arrow.target and arrow.source in chosen and arrow.target in chosen and arrow.passed_on:
            yield _edge(arrow, points, chosen, most, made.total)
    for name, place in chosen.items():
        yield _node(points[name], place)
    yield "</svg>\n"


def _edge(arrow: Arrow, points: dict[str, Point], places: dict[str, tuple[float, float]], most: int, total: int) -> str:
    one, other = points[arrow.source], points[arrow.target]
    (x1, y1), (x2, y2) = places[arrow.source], places[arrow.target]
    knotted = one.knot and one.knot == other.knot
    bend_x, bend_y = (x1 + x2) / 2 + _BEND * (y2 - y1), (y1 + y2) / 2 - _BEND * (x2 - x1)
    width = max(0.6, _WIDEST * arrow.passed_on / most)
    told = f"{one.name} waits for {other.name}: {duration(arrow.passed_on)}, {share(arrow.passed_on, total)} of all"
    return (
        f'<path class="{"knot" if knotted else "edge"}" d="M{x1:.1f} {y1:.1f}Q{bend_x:.1f} {bend_y:.1f} '
        f'{x2:.1f} {y2:.1f}" stroke-width="{width:.1f}" marker-end="url(#tip-of-edge)">'
        f"<title>{markup(told)}</title></path>\n"
    )


def _node(point: Point, place: tuple[float, float]) -> str:
    x, y = place
    anchor = "middle" if abs(x - _WIDTH / 2) < 1 else "start" if x > _WIDTH / 2 else "end"
    label_x = x + {"middle": 0, "start": 9, "end": -9}[anchor]
    label_y = y + (18 if y > _HEIGHT / 2 and anchor == "middle" else -10 if anchor == "middle" else 4)
    return (
        f'<circle class="{"person" if point.traced or point.pid else "thing"}" cx="{x:.1f}" cy="{y:.1f}" r="6">'
        f"<title>{markup(_told(point))}</title></circle>"
        f'<text x="{label_x:.1f}" y="{label_y:.1f}" text-anchor="{anchor}">'
        f"{markup(shortened(point.name, _LABEL))}</text>\n"
    )


def _told(point: Point) -> str:
    return f"{point.name}: blocked {duration(point.waits)}, blocks others for {duration(point.blocks)}"


def _table(made: Picture) -> Iterator[str]:
    names = {point.id: point.name for point in made.points}
    yield '<table><thead><tr><th class="number">Waited</th><th class="number">Passed on</th>'
    yield '<th class="number">Share</th><th>Who waits</th><th>For whom</th></tr></thead><tbody>\n'
    for arrow in made.arrows[:_ROWS]:
        numbers = (duration(arrow.waited), duration(arrow.passed_on), share(arrow.passed_on, made.total))
        cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
        yield f"<tr>{cells}<td>{markup(names[arrow.source])}</td><td>{markup(names[arrow.target])}</td></tr>\n"
    yield "</tbody></table>\n"
    yield "<p>Passed on: while somebody waited too, what others waited for him goes on to whom he waited for.</p>\n"
