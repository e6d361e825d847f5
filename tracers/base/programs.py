"""Predicts from its arguments which programs a command will run: its own, a script's interpreter, wrapped commands.

Nothing is run to find out. The result may be incomplete: other programs are only known once they run.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_MOST, _STEPS = 8, 32
"""Maximum number of programs of one command, and of names that are looked up to find them."""
_MAX_LINE = 256
"""Bytes of a script's first line that the kernel reads (BINPRM_BUF_SIZE)."""
_MAX_TEXT = 1 << 14
_WRAPPERS = frozenset(
    (
        *("chrt", "command", "doas", "exec", "ionice", "nice", "nohup", "numactl", "schedtool", "setarch", "setpriv"),
        *("setsid", "stdbuf", "sudo", "taskset", "time", "timeout", "unbuffer", "xargs"),
    )
)
"""Commands that run the first of their arguments that is a program."""
_SHELLS = frozenset(("ash", "bash", "busybox", "dash", "ksh", "mksh", "sh", "zsh"))
_NO_PROGRAMS = frozenset(
    (
        *("!", "if", "then", "elif", "else", "fi", "do", "done", "while", "until", "for", "case", "esac", "{", "}"),
        *("[", "[[", "time", "exec", "command"),
    )
)
"""Shell words that may precede a command, or stand in its place."""


class Program(NamedTuple):
    """A file that will be executed, and the environment that it will have."""

    path: str
    environ: Mapping[str, str]


def programs(command: Sequence[str], environ: Mapping[str, str]) -> list[Program]:
    """The programs of a command, in the order in which they start; empty when there is no such command."""
    found: dict[str, Program] = {}
    todo = deque([(list(command), environ)])
    for _ in range(_STEPS):
        if not todo or len(found) == _MOST:
            break
        words, variables = todo.popleft()
        path = find_program(words[0], variables) if words else None
        if path is None:
            continue
        if interpreter := _interpreter(path):
            todo.appendleft(([*interpreter, path, *words[1:]], variables))
            continue
        found.setdefault(path, Program(path, variables))
        todo.extend(_begun_by(os.path.basename(path), words[1:], variables))
    return list(found.values())


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """The file that execvp(3) would execute for a name."""
    folders = [""] if "/" in name else environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.join(folder, name) if "/" in name or folder else f"./{name}"
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(status.st_mode) and status.st_mode & 0o111:
            return path
    return None


def _interpreter(path: str) -> list[str]:
    """The interpreter of a script, with its one argument, split as the kernel splits the line: see execve(2)."""
    try:
        with open(path, "rb") as file:
            line = file.read(_MAX_LINE)
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    return [os.fsdecode(word) for word in line[2:].split(b"\n")[0].strip(b" \t").split(None, 1)]


def _begun_by(name: str, words: list[str], environ: Mapping[str, str]) -> list[tuple[list[str], Mapping[str, str]]]:
    """The commands in a program's arguments, with their environments."""
    if name == "env":
        return [_of_env(words, dict(environ))]
    if name in _SHELLS:
        return [(each, environ) for each in _of_shell(words)]
    if name in _WRAPPERS:
        for i, word in enumerate(words):
            if not word.startswith("-") and find_program(word, environ):
                return [(words[i:], environ)]
    return []


def _of_env(words: list[str], environ: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command that env(1) runs."""
    words = words.copy()
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word in ("-i", "-", "--ignore-environment"):
            environ.clear()
        elif word in ("-u", "--unset", "-C", "--chdir"):
            if words and word in ("-u", "--unset"):
                environ.pop(words[0], None)
            del words[:1]
        elif word in ("-S", "--split-string") and words:
            words[:1] = _split(words[0])
        elif word.startswith("-S"):
            words[:0] = _split(word[2:])
        elif not word.startswith("-"):
            if not equals:
                return [word, *words], environ
            environ[name] = value
    return [], environ


def _of_shell(words: list[str]) -> list[list[str]]:
    """The simple commands in a shell's arguments: `sh -c 'cd x; exec prog'` runs prog, and a script may do the same."""
    text = ""
    for i, word in enumerate(words):
        if not word.startswith(("-", "+")):
            text = _read_text(word)
        elif not word.startswith("--") and word.endswith("c"):
            text = words[i + 1] if i + 1 < len(words) else ""
        else:
            continue
        break
    commands: list[list[str]] = [[]]
    for token in _split(text.replace("\n", ";"), punctuation=True):
        if set(token) <= set(";&|()"):
            commands.append([])
        elif commands[-1] or not (token in _NO_PROGRAMS or _is_assignment(token)):
            commands[-1].append(token)
    return [each for each in commands if each]


def _read_text(path: str) -> str:
    """A script's text without comments."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return ""
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(_MAX_TEXT)
    except (OSError, ValueError):
        return ""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _split(text: str, *, punctuation: bool = False) -> list[str]:
    lexer = shlex.shlex(text[:_MAX_TEXT], posix=True, punctuation_chars=";&|()" if punctuation else False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:  # an unclosed quote
        return words
    return words
