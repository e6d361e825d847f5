from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stallscope.tracers.base.scripts import script_of


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("python3 train.py --epochs 3", "train.py"),
        ("/opt/venv/bin/python3.11 -u -X dev /srv/train.py", "train.py"),
        ("python -Xdev -Wignore train.py", "train.py"),
        ("python3 -m torch.distributed.run train.py", "-m torch.distributed.run"),
        ("python3 -Bum package.module x", "-m package.module"),
        ("python3 -mpackage", "-m package"),
        ("python3 -c import_time", "-c"),
        ("python3 -Ic x", "-c"),
        ("python3 -", "-"),
        ("python3 -- -x.py", "-x.py"),
        ("python3", ""),
        ("python3 -m", "-m "),
        ("pypy3 x.py", "x.py"),
        ("node --max-old-space-size=4096 -r ts-node/register /srv/server.js", "server.js"),
        ("node -e 1", "-e"),
        ("node --eval=1", "--eval"),
        ("java -Xmx4g -cp a.jar:b.jar --add-opens java.base/x=ALL com.example.Main arg", "com.example.Main"),
        ("/usr/lib/jvm/bin/java -Dx=y -jar /opt/app.jar", "app.jar"),
        ("java --module-path=mods -m app/com.Main", "-m app/com.Main"),
        ("perl -w -I lib /usr/bin/ack x", "ack"),
        ("perl -we code", "-e"),
        ("ruby -e code", "-e"),
        ("ruby -rjson -I lib app.rb", "app.rb"),
        ("bash -euo pipefail deploy.sh", "deploy.sh"),
        ("-bash", ""),
        ("sh -c sleep", "-c"),
        ("postgres: writer", ""),
        ("pythonista x.py", ""),
        ("", ""),
    ],
)
def test_what_an_interpreter_runs(line: str, script: str) -> None:
    assert script_of(line.encode().split(b" ")) == script


def test_long_names_are_cut() -> None:
    assert script_of([b"python3", b"x" * 1000]) == "x" * 64


@given(st.sampled_from([b"python3", b"java", b"node", b"perl", b"bash"]), st.lists(st.binary(max_size=9), max_size=6))
def test_any_command_line_is_endured(program: bytes, arguments: list[bytes]) -> None:
    assert len(script_of([program, *arguments])) <= 64


def test_no_command_line() -> None:
    assert script_of([]) == ""
