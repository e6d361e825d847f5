from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import zlib
from html.parser import HTMLParser

import pytest
from scans import HOSTILE, scanned_host, three_troubles
from stallscope.converters.base.text import printable
from stallscope.converters.model import Profile
from stallscope.converters.scan.page import page
from stallscope.converters.scan.report import report_of


def text(profile: Profile) -> str:
    report, file = report_of(profile), io.BytesIO()
    page.write(profile, report, file, page.lanes_block(profile, report))
    return file.getvalue().decode()


class Tags(HTMLParser):
    """Tags with their attributes, and all text outside of scripts."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] not in ("script", "style"):
            self.text += data


def block(source: str, name: str) -> bytes:
    found = re.search(rf'<script type="application/octet-stream" id="{name}">\n([A-Za-z0-9+/=\n]+)</script>', source)
    assert found, name
    return zlib.decompress(base64.b64decode(found[1]))


def test_names_change_no_tag() -> None:
    def tags(profile: Profile) -> list[object]:
        # The number of sentences may differ, and the hash of a style with other colours.
        left_out = ("p", "meta")
        return [each for each in Tags(text(profile)).tags if each[0] not in left_out]

    assert tags(scanned_host(name=HOSTILE)) == tags(scanned_host())


def test_names_are_in_blocks_or_escaped() -> None:
    source = text(scanned_host(name=HOSTILE))
    for name in ("data", "graphdata", "lanesdata"):
        assert block(source, name).count(b"onerror") > 1
    outside = re.sub(r"<script type=.*?</script>", "", source, flags=re.DOTALL)
    assert "<img" not in outside
    assert "<script>alert" not in outside
    assert "\x1b" not in source
    assert printable(HOSTILE) in Tags(source).text


def test_the_answer_stands_in_the_page_itself() -> None:
    profile = three_troubles()
    told = Tags(text(profile)).text
    for sentence in report_of(profile).summary.answer:
        assert printable(sentence) in told


def test_only_its_own_script_and_style_may_run() -> None:
    source = text(scanned_host())
    style, script = (re.findall(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL)[-1] for tag in ("style", "script"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', source)
    assert policy
    assert "default-src 'none'" in policy[1]
    for part in (style, script):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert "http" not in re.sub(r"http-equiv", "", style + script)
    assert source.count("<script>") == 1


def test_the_report_is_the_first_block() -> None:
    profile = scanned_host()
    data = json.loads(block(text(profile), "data"))
    assert [row["kind"] for row in data["rows"]] == [each.kind for each in report_of(profile).processes]


def test_without_events_there_is_no_block_of_lanes() -> None:
    profile = scanned_host(events=False)
    assert page.lanes_block(profile, report_of(profile)) == b""
    assert 'id="lanesdata"' not in text(profile)


def test_large_graphs_are_coloured_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b'"byNode":true' in block(text(scanned_host()), "graphdata")
    monkeypatch.setattr(page, "MOST_BY_STATE", 3)
    assert b'"byNode":false' in block(text(scanned_host()), "graphdata")


def test_size() -> None:
    assert len(text(scanned_host())) < 400_000
