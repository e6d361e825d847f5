"""Packages out of Debian's archive, of any suite, without a change to this system's own package lists.

apt does the fetching and the checking: with a source list, lists and caches of our own, signed by the archive's keys.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernels import cache_folder

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_FRESH = 24 * 3600
"""Seconds for which a suite's index is good."""
_AT_ONCE = 20
"""Packages that one call fetches."""


class ArchiveError(Exception):
    """apt could not give what was asked for: its own words."""


def fetch(suite: str, package: str, *, for_all: bool = False) -> list[Path]:
    """The package and the ``linux-`` packages that it needs, as files. Fetched once for each version.

    ``for_all``: those for all architectures, too: headers, but no kernel.
    """
    apt = _Apt(suite)
    apt.update()
    kinds = ("amd64", "all") if for_all else ("amd64",)
    return [file for name in apt.needed(package) for file in apt.downloaded(name) if file.stem.endswith(kinds)]


def fetch_named(suite: str, packages: Sequence[str]) -> list[Path]:
    """Fetches these packages, without what they need, as files, once for each version."""
    apt = _Apt(suite)
    apt.update()
    return [file for name in packages for file in apt.downloaded(name)]


def fetch_with_needs(suite: str, packages: Sequence[str], *, without: str) -> list[Path]:
    """Fetches these packages and everything that they need, as apt chooses it for an empty system, once a version.

    ``without``: what the names of those begin with that are not fetched.
    """
    apt = _Apt(suite)
    apt.update()
    chosen = apt.chosen(packages).items()
    return apt.all_downloaded({name: version for name, version in chosen if not name.startswith(without)})


class _Apt:
    """apt-get and apt-cache with lists and caches of our own."""

    def __init__(self, suite: str) -> None:
        self._suite = suite
        self._folder = cache_folder() / "apt" / suite
        for name in ("lists/partial", "cache/archives/partial", "state"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        (self._folder / "state" / "status").touch()
        source = self._folder / "sources.list"
        source.write_text(f"deb [arch=amd64 signed-by={KEYRING}] {_archive()} {suite} main\n")
        settings = {
            "Dir::Etc::SourceList": source,
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State": self._folder / "state",
            "Dir::State::Lists": self._folder / "lists",
            "Dir::State::status": self._folder / "state" / "status",
            "Dir::Cache": self._folder / "cache",
            "Acquire::Languages": "none",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "root",
        }
        self._options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]

    def run(self, command: str, *arguments: str, folder: Path | None = None) -> str:
        done = subprocess.run(
            [command, *self._options, *arguments], cwd=folder, capture_output=True, text=True, timeout=300
        )
        if done.returncode:
            raise ArchiveError(f"{command} {' '.join(arguments)} ({self._suite}): {done.stderr.strip()[-500:]}")
        return done.stdout

    def update(self) -> None:
        """Reads the suite's index anew once a day. Lists that are there are good enough when the archive is not."""
        stamp = self._folder / "updated"
        if stamp.exists() and time.time() - stamp.stat().st_mtime < _FRESH:
            return
        try:
            self.run("apt-get", "-qq", "--error-on=any", "update")
        except ArchiveError as error:
            if not stamp.exists():
                raise
            print(f"vm: the index of {self._suite} could not be read anew, an older one is used: {error}")
            return
        stamp.touch()

    def needed(self, package: str) -> list[str]:
        unwanted = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
        text = self.run("apt-cache", "depends", "--recurse", *(f"--no-{kind}" for kind in unwanted), package)
        names = [line for line in text.splitlines() if line.startswith("linux-") and line != "linux-base"]
        # The meta package is empty: the kernel is in what it depends on.
        return [name for name in names if name != package]

    def chosen(self, packages: Sequence[str]) -> dict[str, str]:
        """Versions by name, of the packages and of what they need: nothing counts as installed."""
        text = self.run("apt-get", "-s", "-y", "--no-install-recommends", "install", *packages)
        return dict(re.findall(r"^Inst (\S+) \((\S+)", text, re.MULTILINE))

    def all_downloaded(self, versions: Mapping[str, str]) -> list[Path]:
        """The packages of these versions, as files in the cache."""
        folder = _debs()
        missing = [f"{name}={version}" for name, version in versions.items() if not _files(folder, name, version)]
        for at in range(0, len(missing), _AT_ONCE):
            self.run("apt-get", "download", *missing[at : at + _AT_ONCE], folder=folder)
        return [file for name, version in versions.items() for file in _files(folder, name, version)]

    def downloaded(self, name: str) -> list[Path]:
        """The package's candidate, as files in the cache."""
        return self.all_downloaded({name: self.version(name)})

    def version(self, package: str) -> str:
        for line in self.run("apt-cache", "policy", package).splitlines():
            if line.strip().startswith("Candidate:"):
                return line.split()[1]
        raise ArchiveError(f"{self._suite} has no package {package}")


def _debs() -> Path:
    folder = cache_folder() / "debs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _files(folder: Path, name: str, version: str) -> list[Path]:
    files = (folder / f"{name}_{version.replace(':', '%3a')}_{kind}.deb" for kind in ("amd64", "all"))
    return [file for file in files if file.exists()]


def _archive() -> str:
    """The address of Debian's archive, as this system is configured to reach it."""
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in targets.stdout.splitlines():
        address, _, what = line.partition(" ")
        if what == "Debian Debian":
            return address
    raise ArchiveError("this system's package sources name no archive of Debian's: run `apt-get update` first")
