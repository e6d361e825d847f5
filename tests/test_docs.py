"""The pages tell of what exists: commands, their options, files, and pictures that are small enough to be kept."""

from __future__ import annotations

import re
import runpy
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import click
import pytest
import tutorial_pictures
from test_layout import ROOT, command_module, console_scripts

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted(ROOT.glob("*/README.md")),
    *sorted(ROOT.glob("docs/*.md")),
]
COMMAND_PAGES = [page for page in PAGES if "trace-" in page.read_text()]
TUTORIAL = ROOT / "docs" / "tutorial.md"
PICTURES = sorted(ROOT.glob("docs/*.svg"))
LARGEST_PICTURE = 120_000

_CODE = re.compile(r"(?:^    .*\n|^\n(?=    ))+", re.MULTILINE)
_INLINE = re.compile(r"`(?:sudo )?(trace-[a-z]+ [^`]+)`")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def shell_lines(text: str) -> list[str]:
    """Lines of the indented blocks of a page; of a block with prompts ("$ ") only what follows them."""
    lines = []
    for block in _CODE.findall(text):
        block_lines = [line[4:] for line in block.replace("\\\n", " ").splitlines()]
        prompted = [line[2:] for line in block_lines if line.startswith("$ ")]
        lines += prompted or block_lines
    return lines


def traces(line: str) -> list[list[str]]:
    """Commands of this project in a shell's line, each with its arguments."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    found: list[list[str]] = []
    ours = False
    for word in lexer:
        if Path(word).name in console_scripts():
            found.append([Path(word).name])
            ours = True
        elif set(word) <= set("|&;<>"):
            ours = False
        elif ours:
            found[-1].append(word)
    return found


def commands(text: str) -> list[list[str]]:
    lines = [line for line in shell_lines(text) if re.search(r"\btrace-[a-z]+ ", line)]
    return [command for line in (*lines, *_INLINE.findall(text)) for command in traces(line)]


def make_targets(text: str) -> list[str]:
    lines = [line for line in (*shell_lines(text), *re.findall(r"`([^`\n]+)`", text)) if line.startswith("make ")]
    return [target for line in lines for target in re.split(r"[;&|]", line)[0].split()[1:]]


def load(command: str) -> click.Command:
    found = __import__(command_module(command), fromlist=["main"]).main
    assert isinstance(found, click.Command)
    return found


def refusal(command: list[str]) -> str:
    """Refusal of the arguments by the command, "" when it takes them; nothing is run."""
    arguments = [re.sub(r"^\$?PID$", "4711", argument) for argument in command[1:]]
    try:
        load(command[0]).make_context(command[0], arguments)
    except click.UsageError as error:
        return f"{shlex.join(command)}: {error.format_message()}"
    return ""


def test_commands_are_found() -> None:
    text = (
        "Words.\n\n    $ perf script | trace-convert --pid -o 'a b.svg'  # a picture\n    trace-wall output\n\n"
        "Or `sudo trace-wall -a`, `trace-offcpu`.\n\n    .venv/bin/trace-doctor && trace-oncpu -a \\\n      -d 5\n"
    )
    assert commands(text) == [
        ["trace-convert", "--pid", "-o", "a b.svg"],
        ["trace-doctor"],
        ["trace-oncpu", "-a", "-d", "5"],
        ["trace-wall", "-a"],
    ]


@pytest.mark.parametrize(
    "wrong", ["trace-wall --nothing", "trace-offcpu -d", "trace-convert --to nowhere x", "trace-oncpu -F x"]
)
def test_a_wrong_command_is_refused(wrong: str) -> None:
    assert refusal(wrong.split()).startswith(wrong)


@pytest.mark.parametrize("page", COMMAND_PAGES, ids=name_of)
def test_commands_take_the_options_that_the_page_gives_them(page: Path) -> None:
    assert [why for why in map(refusal, commands(page.read_text())) if why] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    links = [link for link in _LINK.findall(page.read_text()) if not link.startswith(("http:", "https:"))]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_tutorial_names_options_that_exist() -> None:
    named = {
        word
        for code in re.findall(r"`([^`\n]+)`", TUTORIAL.read_text())
        for word in re.findall(r"(?<!\S)--[a-z-]+", code)
    }
    known = {option for command in console_scripts() for parameter in load(command).params for option in parameter.opts}
    assert named - known == set()


def test_the_tutorial_is_what_its_make_target_runs() -> None:
    told = [shlex.join(command) for command in commands(TUTORIAL.read_text())]
    run = [*tutorial_pictures.SLOW, *tutorial_pictures.FAST, *tutorial_pictures.LATER]
    assert [command for command in run if shlex.join(shlex.split(command)) not in told] == []


@pytest.mark.parametrize("target", sorted({*make_targets(TUTORIAL.read_text())}))
def test_the_tutorial_names_targets_that_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_pictures_of_the_tutorial_are_its_make_targets() -> None:
    shown = set(re.findall(r"!\[[^]]+\]\((tutorial-[^)]+)\)", TUTORIAL.read_text()))
    assert shown == set(tutorial_pictures.PICTURES.values())


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_picture_is_small_and_well_formed(picture: Path) -> None:
    assert picture.stat().st_size < LARGEST_PICTURE
    assert ET.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_picture_names_no_folder_of_a_machine(picture: Path) -> None:
    files = re.findall(r"· (/[^<]+)</title>", picture.read_text())
    assert [file for file in files if not file.startswith(("/usr/", "/lib/"))] == []


def test_verdicts_are_described_as_the_code_has_them() -> None:
    """`scripts/verdicts_doc.py` writes the page."""
    script = runpy.run_path(str(ROOT / "scripts" / "verdicts_doc.py"))
    assert (ROOT / "docs" / "verdicts.md").read_text() == script["text"]()
