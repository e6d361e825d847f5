from __future__ import annotations

import base64
import hashlib
import io
import re
import zlib
from html.parser import HTMLParser

import pytest
from stallscope.converters.base.errors import StallscopeError
from stallscope.converters.base.text import printable
from stallscope.converters.model import Frame, Profile, Sample, ValueType
from stallscope.converters.writers.base.options import WriteOptions
from stallscope.converters.writers.html import writer as html

HOSTILE = "</title></script><script>alert(1)</script><img src=x onerror=alert(1)>\x1b\udcff\u202e&lt;\"'"
TYPES = [ValueType(HOSTILE, HOSTILE)]


def hostile() -> Profile:
    samples = [Sample((Frame(HOSTILE), Frame(HOSTILE + str(i))), (i + 1,), (("process", HOSTILE),)) for i in range(3)]
    return Profile(TYPES, samples, HOSTILE, HOSTILE, lost={HOSTILE: 1}, comments=[HOSTILE])


def text(profile: Profile, **options: object) -> str:
    file = io.BytesIO()
    html.write(profile, file, WriteOptions(**options))  # type: ignore[arg-type]
    return file.getvalue().decode()


class Page(HTMLParser):
    """Tags with their attributes, and the text of each."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags:
            self.texts.append((self.tags[-1][0], data))

    def text(self, tag: str) -> list[str]:
        return ["".join(data for name, data in self.texts if name == tag)]


def sections(source: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}(?: [^>]*)?>(.*?)</{tag}>", source, re.DOTALL)


def test_what_comes_from_the_profile_changes_no_tag() -> None:
    def plain(profile: Profile) -> list[tuple[str, dict[str, str | None]]]:
        return Page(text(profile)).tags

    assert plain(hostile()) == plain(Profile([ValueType("v", "count")], [Sample((Frame("f"),), (1,))], "t"))


def test_the_title_is_text() -> None:
    assert Page(text(hostile())).text("title")[0].startswith(printable(HOSTILE))
    assert Page(text(hostile(), title="<b>")).text("title")[0].startswith("<b>")


def test_names_stand_in_the_block_only_and_that_is_base64() -> None:
    source = text(hostile())
    block, script = sections(source, "script")
    assert re.fullmatch(r"[A-Za-z0-9+/=\n]+", block)
    unpacked = zlib.decompress(base64.b64decode(block))
    assert unpacked.count(b"onerror") > 3
    outside = source.replace(block, "")
    assert outside.count("onerror") == 1  # in the title, escaped
    assert "</script" not in script
    assert "onerror" not in script


def test_lines_of_the_block_join() -> None:
    frames = [Frame(f"{i * 7919 % 100_003}-{i * 104_729 % 99_991}") for i in range(40_000)]
    content = Profile([ValueType("v", "count")], [Sample((frame,), (i + 1,)) for i, frame in enumerate(frames)])
    block, _ = sections(text(content), "script")
    assert block.strip().count("\n") > 2
    assert zlib.decompress(base64.b64decode(block))


def test_only_its_own_script_and_style_may_run() -> None:
    source = text(hostile())
    page = Page(source)
    policy = next(
        attributes["content"] for tag, attributes in page.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )  # fmt: skip
    (style,) = sections(source, "style")
    script = sections(source, "script")[1]

    def digest(content: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"

    assert policy is not None
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {digest(script)}",
        f"style-src {digest(style)}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    # The policy has to come before anything that it rules.
    assert source.index("Content-Security-Policy") < source.index("<style")


def test_nothing_is_fetched_or_handled_inline() -> None:
    source = text(hostile())
    block = sections(source, "script")[0]
    for tag, attributes in Page(source).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form", "a")
        assert not {"src", "href", "style"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    rest = source.replace(block, "")
    for forbidden in ("http://", "https://", "url(", "@import", "innerHTML", "insertAdjacentHTML", "document.write",
                      "eval(", "new Function", "fetch(", "XMLHttpRequest", "WebSocket", "import("):  # fmt: skip
        assert forbidden not in rest, forbidden


def test_the_same_profile_gives_the_same_bytes() -> None:
    assert text(hostile()) == text(hostile())


def test_colours_are_those_of_the_palette() -> None:
    assert text(hostile(), palette="hot") != text(hostile(), palette="io")
    with pytest.raises(StallscopeError):
        text(hostile(), palette="x")


def test_a_value_that_is_not_there() -> None:
    with pytest.raises(StallscopeError):
        text(hostile(), value="x")
