"""Codes of what is to be said of a profile."""

from __future__ import annotations

from stallscope.converters.model import Profile, Sample, ThreadTimes, ValueType
from stallscope.converters.model.remarks import (
    CODES,
    EventsLost,
    FramesNameless,
    Kept,
    OfSide,
    ProbesCost,
    Remark,
    SwitchesUnseen,
    TablesFull,
    is_caveat,
    names_nothing,
    plain,
    side_of,
    without_side,
)
from stallscope.converters.model.samples import Frame
from stallscope.converters.summary.summarize import summarize

MS = 1_000_000
LOSSY = EventsLost(50, 50, sampled=False, careful=True)
NAMELESS = FramesNameless((("libx.so", 5), ("y", 1)), 2)


def test_every_remark_has_a_code() -> None:
    def subclasses(of: type[Remark]) -> set[type[Remark]]:
        return {each for made in of.__subclasses__() for each in (subclasses(made) or {made})}

    assert set(CODES.values()) == subclasses(Remark)


def test_only_a_large_loss_comes_first() -> None:
    assert is_caveat(LOSSY)
    assert not is_caveat(EventsLost(1, 99, sampled=False, careful=False))
    assert is_caveat(ProbesCost(5, 10, 2, careful=True))
    assert not is_caveat("Careful: half is lost")


def test_a_summary_begins_with_it() -> None:
    columns = [ValueType("off-cpu", "nanoseconds"), *(ValueType(name, "count") for name in ("count", "min", "max"))]
    labels = (("pid", 1), ("process", "x"), ("state", "interruptible"), ("thread", "x"), ("tid", 1))
    samples = [Sample((Frame("main"), Frame("pause")), (900 * MS, 1, 900 * MS, 900 * MS), labels)]
    times = [ThreadTimes(1, "x", 1, "x", 1000 * MS, 100 * MS, 0, {"interruptible": 900 * MS})]
    profile = Profile(columns, samples, duration_ns=1000 * MS, threads=times, comments=["a note", LOSSY, NAMELESS])
    summary = summarize(profile)
    assert summary.answer[0].startswith("Careful: perf lost 50.0 % of the events: ")
    assert summary.answer[0].endswith("(as root).")
    assert len(summary.answer) > 1
    assert summary.comments == ("a note", NAMELESS)
    told = summary.to_json()
    assert told["comments"] == ["a note", "frames without a name: 5 in libx.so, 1 in y, 2 elsewhere"]
    assert told["remarks"] == [{"code": "frames-nameless", "places": [["libx.so", 5], ["y", 1]], "elsewhere": 2}]


def test_what_consists_of_numbers_names_nothing() -> None:
    assert all(map(names_nothing, (LOSSY, SwitchesUnseen(3), TablesFull())))
    assert not any(map(names_nothing, (NAMELESS, OfSide("before", LOSSY), "a note")))


def test_sides_of_a_comparison() -> None:
    kept = Kept(1, 2, "off-cpu", ("--focus a",))
    assert (without_side(OfSide("before", kept)), side_of(OfSide("before", kept))) == (kept, "before")
    assert (without_side(kept), side_of(kept), without_side("x")) == (kept, "", "x")


def test_as_plain_data() -> None:
    made = plain(["a", OfSide("before", NAMELESS)], str.upper)
    inner = {"code": "frames-nameless", "places": [["LIBX.SO", 5], ["Y", 1]], "elsewhere": 2}
    assert made == ["A", {"code": "of-side", "side": "BEFORE", "comment": inner}]
