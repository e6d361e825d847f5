"""``make install`` and ``make uninstall``: the wheel in a virtual environment of its own, its commands in PREFIX/bin.

Usage: ``installer.py install PREFIX WHEEL [VERSIONS]``, ``installer.py uninstall PREFIX``, and ``installer.py isolate``
for the commands of the environment whose Python runs it. VERSIONS is a list of
``NAME==VERSION``, of which no package may differ: those with which the wheel was built. The environment is
PREFIX/lib/stallscope; each command is a symbolic link to it. Nothing that is not ours is overwritten or removed: the
environment is known by a marker file in it, a link by where it points. Standard library only: any Python runs it.
"""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

_MARKER = "installed-by-stallscope"
_PLACEHOLDER = "PATH_PLACEHOLDER = '"


class _Refused(Exception):
    pass


def _commands(wheel: Path) -> list[str]:
    """Names of the wheel's console scripts."""
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        parser = configparser.ConfigParser()
        parser.read_string(archive.read(entry_points).decode())
    return list(parser["console_scripts"])


def _is_ours(link: Path, home: Path) -> bool:
    return link.is_symlink() and Path(os.readlink(link)).parent == home / "bin"


def _check(home: Path, links: list[Path]) -> None:
    foreign = [link for link in links if os.path.lexists(link) and not _is_ours(link, home)]
    if os.path.lexists(home) and (home.is_symlink() or not (home / _MARKER).is_file()):
        foreign.append(home)
    if foreign:
        raise _Refused(f"exists and is not ours: {', '.join(map(str, foreign))}\nmove it away or choose another PREFIX")


def install(prefix: Path, wheel: Path, versions: Path | None = None) -> None:
    """Replaces an older installation of ours; refuses before it has touched anything.

    pip and the commands run isolated, as root for everybody: neither the working folder nor a user's configuration,
    packages or PYTHON* and PIP_* variables count.
    """
    home = prefix / "lib" / "stallscope"
    names = _commands(wheel)
    links = [prefix / "bin" / name for name in names]
    _check(home, links)
    _remove(prefix)
    home.parent.mkdir(parents=True, exist_ok=True)
    (prefix / "bin").mkdir(exist_ok=True)
    home.mkdir()
    (home / _MARKER).touch()  # first: what a failure below leaves can be installed over and uninstalled
    venv.create(home, with_pip=True)
    pip = [str(home / "bin" / "python"), "-I", "-m", "pip", "--isolated", "--no-input", "install", "--quiet"]
    pinned = ["--constraint", str(versions)] if versions else []
    kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    environment = {**kept, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(home)}
    words = [*pip, "--no-warn-script-location", "--only-binary=:all:", "--no-cache-dir", *pinned, str(wheel)]
    subprocess.run(words, check=True, cwd="/", env=environment)
    for name, link in zip(names, links, strict=True):
        _isolate(home / "bin" / name)
        link.symlink_to(home / "bin" / name)
    print(f"installed in {home}: {', '.join(map(str, links))}")


def _isolate(script: Path) -> None:
    """Gives the interpreter of a command, in its first line, the option -I."""
    first, _, rest = script.read_text().partition("\n")
    if first.startswith("#!/") and first.endswith("python -I"):
        return
    if not first.startswith("#!/") or " " in first:
        raise _Refused(f"{script} does not begin as a command that pip has made")
    script.write_text(f"{first} -I\n{rest}")


def isolate() -> None:
    """The commands of this Python's environment, as `install` does it."""
    from importlib.metadata import distribution

    for entry in distribution("stallscope").entry_points:
        if entry.group == "console_scripts":
            try:
                _isolate(Path(sys.prefix, "bin", entry.name))
            except _Refused as refusal:  # where the path is too long for a first line; it isolates itself
                print(refusal)
    for finder in Path(sysconfig.get_path("purelib")).glob("__editable___stallscope_*_finder.py"):
        _name_absolutely(finder)


def _name_absolutely(finder: Path) -> None:
    """An editable installation puts a name that stands for nothing into sys.path. Python looks it up as a file: as it
    is, in the current folder at every start, which waits there if the file system does not answer."""
    text = finder.read_text()
    if f"{_PLACEHOLDER}/" not in text:
        finder.write_text(text.replace(_PLACEHOLDER, f"{_PLACEHOLDER}/proc/"))


def _remove(prefix: Path) -> list[Path]:
    home = prefix / "lib" / "stallscope"
    binaries = prefix / "bin"
    links = [link for link in binaries.iterdir() if _is_ours(link, home)] if binaries.is_dir() else []
    for link in links:
        link.unlink()
    if os.path.lexists(home):
        shutil.rmtree(home)
    return links


def uninstall(prefix: Path) -> None:
    """Removes the links that point into our environment, and the environment."""
    home = prefix / "lib" / "stallscope"
    if not os.path.lexists(home):
        print(f"nothing of ours in {prefix}")
        return
    _check(home, [])
    links = _remove(prefix)
    print(f"removed {', '.join(map(str, [*links, home]))}")


def main(arguments: list[str]) -> int:
    """1 when it was refused or pip failed."""
    os.umask(0o022)
    try:
        match arguments:
            case ["install", prefix, wheel]:
                install(Path(prefix).absolute(), Path(wheel).absolute())
            case ["install", prefix, wheel, versions]:
                install(Path(prefix).absolute(), Path(wheel).absolute(), Path(versions).absolute())
            case ["isolate"]:
                isolate()
            case ["uninstall", prefix]:
                uninstall(Path(prefix).absolute())
            case _:
                print(
                    "usage: installer.py install PREFIX WHEEL [VERSIONS] | uninstall PREFIX | isolate", file=sys.stderr
                )
                return 2
    except _Refused as refusal:
        print(refusal, file=sys.stderr)
    except PermissionError as error:
        print(f"{error.filename}: {error.strerror}\nrun it as root, or choose a PREFIX that is yours", file=sys.stderr)
    except subprocess.CalledProcessError as error:
        print(f"pip failed (status {error.returncode}); make uninstall removes what is there", file=sys.stderr)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
