"""Puts libbpf, and what it needs beside the C library, into a folder of the wheel that ``make wheel`` builds.

Usage: ``carried_libraries.py FOLDER``. The files are those that this machine's packages installed, with the licences of
these packages, and ``carried.json``, which says what they are, in the order in which they have to be loaded. It prints
the wheel's platform: that of the oldest C library on which they load (PEP 600). Where a library is of no package, its
licence is not known: none is carried, a line on standard error says so, and the platform is any Linux.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

_WANTED = "libbpf.so.1"
_C_LIBRARY = re.compile(r"(ld-linux.*|lib(c|m|dl|pthread|rt))\.so\.\d+")
_RTLD_DI_LINKMAP = 2
_DOCUMENTS = Path("/usr/share/doc")
_LICENCES = Path("/usr/share/common-licenses")
_OS_RELEASE = Path("/etc/os-release")


class NotCarried(Exception):
    """Reason why the libraries cannot be passed on."""


class Needs(NamedTuple):
    """Needs of a library: names of others, and the versions of the C library's symbols, ``GLIBC_2.33``."""

    libraries: list[str]
    versions: set[str]


class Package(NamedTuple):
    """A package of this machine, and the source package that it was built from."""

    name: str
    version: str
    source: str
    source_version: str


class _LinkMap(ctypes.Structure):
    """The beginning of struct link_map (link.h)."""

    _fields_ = [("l_addr", ctypes.c_void_p), ("l_name", ctypes.c_char_p)]


def path_of(name: str) -> Path:
    """The file that the dynamic linker takes for ``name``. OSError when it has none."""
    library = ctypes.CDLL(name)
    found = ctypes.POINTER(_LinkMap)()
    if ctypes.CDLL(None).dlinfo(ctypes.c_void_p(library._handle), _RTLD_DI_LINKMAP, ctypes.byref(found)):
        raise OSError(f"{name}: dlinfo does not know it")
    return Path(os.fsdecode(found.contents.l_name))


def needs_of(path: Path) -> Needs:
    """Read from the file's dynamic section and its required versions."""
    libraries: list[str] = []
    versions: set[str] = set()
    with path.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if isinstance(section, DynamicSection):
                tags: Iterable[Any] = section.iter_tags("DT_NEEDED")
                libraries += [tag.needed for tag in tags]
            elif isinstance(section, GNUVerNeedSection):
                for required, entries in section.iter_versions():
                    if _C_LIBRARY.fullmatch(required.name or ""):
                        versions |= {entry.name for entry in entries}
    return Needs(libraries, versions)


def in_load_order(name: str, needs: Callable[[str], Needs]) -> list[str]:
    """``name`` and all that it needs beside the C library, each after what it needs itself."""
    ordered: list[str] = []

    def add(library: str) -> None:
        if library in ordered or _C_LIBRARY.fullmatch(library):
            return
        for other in needs(library).libraries:
            add(other)
        ordered.append(library)

    add(name)
    return ordered


def oldest_c_library(versions: Iterable[str], here: tuple[int, int]) -> tuple[int, int]:
    """The version of glibc that has all of these; ``here`` is that of this machine, which has them, too."""
    oldest = (2, 17)  # of the first manylinux with a glibc in its name
    for version in versions:
        # Others, as GLIBC_ABI_DT_RELR, name a feature of some version up to this machine's.
        number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
        oldest = max(oldest, (int(number[1]), int(number[2])) if number else here)
    return oldest


def package_of(path: Path) -> Package:
    """The package that installed the file. NotCarried when none did."""
    if not shutil.which("dpkg-query"):
        raise NotCarried("this system's packages are not Debian's")
    # Where /lib is a link to /usr/lib, a package may have installed the file under either name.
    names = {os.path.abspath(path), os.path.realpath(path)}
    names |= {name.removeprefix("/usr") for name in names} | {f"/usr{name}" for name in names if name[:5] != "/usr/"}
    search = ["dpkg-query", "--search", *sorted(names)]  # its status says that it does not know all of them
    found = subprocess.run(search, capture_output=True, text=True, check=False).stdout
    owners = {line.rpartition(": ")[0] for line in found.splitlines() if not line.startswith("diversion ")}
    if len(owners) != 1:
        raise NotCarried(f"{path} is of no package")
    fields = ("Package", "Version", "source:Package", "source:Version")
    command = ["dpkg-query", "--show", "--showformat", "\t".join(f"${{{field}}}" for field in fields), *owners]
    return Package(*subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\t"))


def copy_licences(package: Package, folder: Path) -> list[str]:
    """The package's statement, and the licences that it only refers to, as other systems do not have them. Names."""
    statement = _DOCUMENTS / package.name / "copyright"
    if not statement.is_file():
        raise NotCarried(f"the licence of {package.name} is missing ({statement})")
    copied = [f"{package.name}.copyright"]
    text = statement.read_text(errors="replace")
    (folder / copied[0]).write_text(text)
    for name in sorted(set(re.findall(rf"{_LICENCES}/([\w.+-]*\w)", text))):
        if not (_LICENCES / name).is_file():
            raise NotCarried(f"the licence {_LICENCES / name} is missing")
        shutil.copyfile(_LICENCES / name, folder / name)
        copied.append(name)
    return copied


def system_name() -> str:
    """Name that this system gives itself, ``Debian GNU/Linux 12 (bookworm)``."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', _OS_RELEASE.read_text(), re.MULTILINE)
    return found[1] if found else "Linux"


def carry(folder: Path) -> tuple[int, int]:
    """Fills the folder. The version of the oldest C library on which all of it loads. NotCarried, OSError."""
    paths: dict[str, Path] = {}
    needs: dict[str, Needs] = {}

    def look(name: str) -> Needs:
        paths[name] = path_of(name)
        needs[name] = needs_of(paths[name])
        return needs[name]

    entries = []
    for name in in_load_order(_WANTED, look):
        package = package_of(paths[name])
        shutil.copyfile(paths[name], folder / name)
        entries.append({"file": name, **package._asdict(), "licences": copy_licences(package, folder)})
    manifest = {"system": system_name(), "libraries": entries}
    (folder / "carried.json").write_text(json.dumps(manifest, indent=1) + "\n")
    here = platform.libc_ver()[1].split(".")
    versions = {version for needed in needs.values() for version in needed.versions}
    return oldest_c_library(versions, (int(here[0]), int(here[1])))


def main(arguments: list[str]) -> int:
    """Prints the wheel's platform."""
    if len(arguments) != 1:
        print("usage: carried_libraries.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        major, minor = carry(folder)
    except (NotCarried, OSError) as reason:
        shutil.rmtree(folder)
        print(f"the wheel carries no libbpf, and uses that of the system that it runs on: {reason}", file=sys.stderr)
        print(f"linux_{platform.machine()}")
        return 0
    print(f"manylinux_{major}_{minor}_{platform.machine()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
