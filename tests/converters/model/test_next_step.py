from __future__ import annotations

import shlex

from stallscope.converters.model.next_step import NextStep, Whom


def test_a_line_is_quoted() -> None:
    whom = Whom(("-n", "a'b; reboot"), ("sh", "-c", "echo $HOME"))
    step = NextStep("trace-func", whom, ("-d", "5"), "more", ("lib.so:get*",), sudo=True)
    assert shlex.split(step.command) == [
        *("sudo", "trace-func", "lib.so:get*", "-n", "a'b; reboot", "-d", "5", "--", "sh", "-c", "echo $HOME")
    ]
    assert step.words == ("lib.so:get*", "-n", "a'b; reboot", "-d", "5")


def test_a_capture_has_no_command_line() -> None:
    step = NextStep("trace-wall", Whom((), ("login", "--password", "x")), ("-d", "5"), "more")
    assert step.without_command().command == "trace-wall -d 5 -- COMMAND"
    alone = step._replace(whom=Whom(("-a",)))
    assert alone.without_command() == alone


def test_words_that_need_no_quotes_have_none() -> None:
    assert NextStep("trace-wall", Whom(("-p", "4,5")), ("-d", "0.5"), "").command == "trace-wall -p 4,5 -d 0.5"
