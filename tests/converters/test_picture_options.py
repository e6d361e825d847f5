from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from stallscope.converters import convert
from stallscope.converters import picture_options as picture
from stallscope.converters.writers.base.options import WriteOptions


def wanted(*arguments: str) -> WriteOptions:
    """Options for writing that the arguments ask for."""
    seen: list[WriteOptions] = []

    @click.command()
    @picture.options
    def command(**given: object) -> None:
        seen.append(WriteOptions(**picture.wanted(given)))

    result = CliRunner().invoke(command, arguments)
    if result.exit_code:
        raise click.UsageError(result.output)
    return seen[0]


def test_without_options_everything_is_as_writers_have_it() -> None:
    assert wanted() == WriteOptions()


def test_every_option_arrives() -> None:
    options = wanted(
        "--subtitle", "s", "--note", "one", "--note", "two", "--unit", "pages", "--palette", "mem", "--inverted",
        "--reverse", "--width", "900", "--min-width", "2", "--font", "Verdana", "--font-size", "15", "--flamechart",
        "--negate", "--total", "60e9", "--factor", "0.5", "--background", "blue", "--height", "30",
    )  # fmt: skip
    assert options == WriteOptions(
        subtitle="s",
        notes=("one", "two"),
        unit="pages",
        palette="mem",
        inverted=True,
        reverse=True,
        width=900,
        min_width=2.0,
        font="Verdana",
        font_size=15,
        flamechart=True,
        negate=True,
        total=60e9,
        factor=0.5,
        background="blue",
        height=30,
    )


@pytest.mark.parametrize(
    ("text", "px", "share"), [("0", 0, 0), ("0.5", 0.5, 0), ("1%", 0, 0.01), ("0.25%", 0, 0.0025), ("100%", 0, 1)]
)
def test_the_least_width_is_in_px_or_a_share(text: str, px: float, share: float) -> None:
    options = wanted("--min-width", text)
    assert (options.min_width, options.min_share) == (px, share)


@pytest.mark.parametrize("text", ["", "x", "-1", "101%", "nan", "inf", "%", "1%%", "1e999"])
def test_no_width(text: str) -> None:
    with pytest.raises(click.UsageError, match="is no width"):
        wanted("--min-width", text)


def test_the_command_draws_what_was_asked_for(tmp_path: Path) -> None:
    source, target = tmp_path / "in.folded", tmp_path / "out.svg"
    source.write_text("main;f 900\nmain;g 100\n")
    options = ["--inverted", "--unit", "pages", "--subtitle", "Mine", "--note", "A note", "--min-width", "20%"]
    assert convert.main([str(source), "-o", str(target), *options, "--palette", "io", "--width", "800"]) == 0
    text = target.read_text()
    assert 'data-inverted="1"' in text
    assert 'data-unit="pages"' in text
    assert ">Mine</text>" in text
    assert ">A note</text>" in text
    assert "<title>g\n" not in text
    assert "900 pages" in text
    assert 'width="800"' in text


def test_a_size_that_cannot_be_drawn_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.folded"
    source.write_text("main;f 900\n")
    assert convert.main([str(source), "-o", str(tmp_path / "out.svg"), "--font-size", "400"]) == 2
    assert "a font size of 400 px cannot be drawn" in capsys.readouterr().err
    assert not (tmp_path / "out.svg").exists()


def titles(path: Path) -> list[str]:
    return [line.split("<title>")[1] for line in path.read_text().split("\n") if line.startswith("<rect class")]


def test_folded_lines_in_their_order_are_a_flame_chart(tmp_path: Path) -> None:
    source, target = tmp_path / "in.folded", tmp_path / "out.svg"
    source.write_text("a;b 5\na;c 5\n# a comment\na;b 5\na;b 5\nd;b 10\n")
    assert convert.main([str(source), "-o", str(target), "--flamechart", "--jobs", "2"]) == 0
    assert titles(target) == ["all", "a", "b", "c", "b", "d", "b"]
    assert 'data-v="2 10 10 10"' in target.read_text(), "the two lines in the middle are one b, the first is another"


@pytest.mark.parametrize("extra", [["--focus", "b"], ["--callers"], ["--simplify", "all"], ["twice"]])
def test_what_does_not_know_the_times_is_no_flame_chart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], extra: list[str]
) -> None:
    source = tmp_path / "in.folded"
    source.write_text("a;b 5\na;c 5\n")
    extra = [str(source)] if extra == ["twice"] else extra
    assert convert.main([str(source), *extra, "-o", str(tmp_path / "out.svg"), "--flamechart"]) == 2
    error = capsys.readouterr().err
    assert "a flame chart needs to know when calls were" in error
    assert "--keep" in error
    assert not (tmp_path / "out.svg").exists()


@pytest.mark.parametrize("outputs", [[], ["-o", "-"], ["-o", "x.html"], ["-o", "x.folded", "-o", "x.trace.json"]])
def test_a_flame_chart_needs_an_svg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], outputs: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.folded").write_text("a;b 5\n")
    assert convert.main(["in.folded", *outputs, "--flamechart"]) == 2
    assert "a flame chart is an SVG\nwrite one: -o NAME.svg" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in.folded"]
    assert convert.main(["in.folded", *outputs, "-o", "chart.svg", "--flamechart"]) == 0


def test_a_flame_chart_on_standard_output(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    source = tmp_path / "in.folded"
    source.write_text("a;b 5\n")
    assert convert.main([str(source), "--to", "svg", "--flamechart"]) == 0
    assert b'data-chart="' in capfdbinary.readouterr().out


def test_all_calls_of_a_flame_chart_are_in_the_trace_beside_it(tmp_path: Path) -> None:
    source, chart, trace = tmp_path / "in.folded", tmp_path / "x.svg", tmp_path / "x.trace.json"
    source.write_text("".join(f"f{i % 7} 1\n" for i in range(20_000)))
    assert convert.main([str(source), "-o", str(chart), "-o", str(trace), "--flamechart"]) == 0
    assert "not drawn: 20,000 (-o NAME.trace.json has all of them" in chart.read_text()
    calls = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [(call["name"], call["ts"], call["dur"]) for call in calls] == [(f"f{i % 7}", i, 1) for i in range(20_000)]


@pytest.mark.parametrize("factor", ["1e308", "1e-320", "nan", "0", "-1"])
@pytest.mark.parametrize("chart", [[], ["--flamechart"]])
def test_a_factor_that_cannot_be_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], factor: str, chart: list[str]
) -> None:
    source, target = tmp_path / "in.folded", tmp_path / "out.svg"
    source.write_text("a;b 5\n")
    assert convert.main([str(source), "-o", str(target), "--factor", factor, *chart]) == 2
    assert "makes no sense\nchoose 1e-12 to 1e+12" in capsys.readouterr().err
    assert not target.exists()


def test_a_thread_of_a_flame_chart(tmp_path: Path) -> None:
    source, target = tmp_path / "in.folded", tmp_path / "out.svg"
    source.write_text("one-1;a 5\ntwo-2;b 5\none-1;c 5\n")
    assert convert.main([str(source), "-o", str(target), "--flamechart"]) == 0
    assert titles(target) == ["one-1", "a", "c", "two-2", "b"]
    assert convert.main([str(source), "-o", str(target), "--force", "--flamechart", "--keep", "process=one"]) == 0
    assert titles(target) == ["one-1", "a", "c"]
    assert 'data-v="1 10 5 5"' in target.read_text()
