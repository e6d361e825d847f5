from __future__ import annotations

import pytest
from stallscope.tracers.expressions.asked import Asked
from stallscope.tracers.expressions.plan import plan
from stallscope.tracers.expressions.source import names, saved_size, source


def made(**options: list[str]) -> str:
    return source([plan(Asked.parse(**options).bind())])


def test_each_function_has_two_programs() -> None:
    plans = [plan(Asked.parse(where=[text]).bind()) for text in ("arg1 > 1", "retval > 1")]
    text = source(plans)
    for i in (0, 1):
        for name in names(i):
            assert text.count(f"int {name}(struct pt_regs *ctx)") == 1


@pytest.mark.parametrize("hostile", ["}; evil(); {", "*/ evil", "\\n evil", '\\"evil', "%s evil", "// evil\n"])
def test_no_text_of_the_user_gets_into_it(hostile: str) -> None:
    quoted = hostile.replace("\n", "\\n")
    text = made(
        declared=["evil:u64=arg1"],
        where=[f'comm == "{quoted}" && evil > 3'],
        prints=[f'"{quoted} %%%d", evil'.replace("%s", "")],
    )
    assert "evil" not in text


def test_what_is_kept_has_room() -> None:
    small = plan(Asked.parse(where=["retval > arg1"]).bind())
    text = plan(Asked.parse(where=["retval > 1"], prints=["str(arg1)"]).bind())
    assert saved_size([small]) == 8 + 8 + 64
    assert saved_size([text]) == 8 + 8 + 64
    assert saved_size([plan(Asked.parse(where=["retval > arg1 || retval == arg2 / 3"]).bind())]) == 8 + 16 + 64


def test_calls_are_timed_in_every_case() -> None:
    """The only ways out are to our programs, or for a call that does not count."""
    text = made(where=["arg1 > 1 && retval > arg2"], hists=["arg3"])
    enter, end = text.partition("int q0_return")[::2]
    body = enter.partition("int q0_enter")[2]
    assert body.rstrip().endswith("resume(ctx, RESUME_ENTER);\n\treturn 1;\n}")
    assert end.count("resume(ctx, RESUME_DROP)") == 3  # it was not kept, a fault, and not true
    assert end.rstrip().endswith("resume(ctx, RESUME_RETURN);\n\treturn 0;\n}")
