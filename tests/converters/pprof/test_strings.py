from __future__ import annotations

import gzip
import re

from hypothesis import given
from hypothesis import strategies as st
from pprof_wire import fields, saved
from stallscope.converters.model import Frame, Profile, Sample
from stallscope.converters.pprof.strings import escape, unescape


@given(st.text(st.one_of(st.characters(), st.sampled_from("\udc80\\u05c")), max_size=30))
def test_any_text_comes_back(text: str) -> None:
    assert unescape(escape(text)) == text
    escape(text).encode()


def test_strings_show_surrogates_as_text() -> None:
    data = saved(Profile([], [Sample((Frame("a\udc80b\\udc80c\\u0041"),), ())]))
    names = [s for s in fields(gzip.decompress(data))[6] if s.startswith(b"a")]
    assert names == [b"a\\udc80b\\u005cudc80c\\u0041"]
    assert not re.search(rb"[\x80-\xff]", names[0])
