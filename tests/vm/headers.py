"""The headers of a kernel of the lane, beside the images: a build folder for modules."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from pathlib import Path

import image
from archive import fetch
from kernels import Kernel, cache_folder


class HeadersError(Exception):
    """Error: there are no headers, and why."""


def build_folder(kernel: Kernel) -> Path:
    """The folder that a module for this kernel is built with."""
    if kernel.from_source:
        return image.build(kernel).root / "build"
    debs = fetch(kernel.suite, kernel.package.replace("linux-image", "linux-headers"), for_all=True)
    key = hashlib.sha256(" ".join(sorted(deb.name for deb in debs)).encode()).hexdigest()[:16]
    root = cache_folder() / "headers" / f"{kernel.name}-{key}"
    if not root.exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root.parent) as aside:
            folder = Path(aside) / "tree"
            folder.mkdir()
            for deb in debs:
                subprocess.run(["dpkg", "-x", deb, folder], check=True)
            _make_movable(folder, root)
            folder.rename(root)
    return _build(root)


def _build(root: Path) -> Path:
    folders = [each for each in root.glob("usr/src/linux-headers-*") if not each.name.endswith("-common")]
    if len(folders) != 1:
        raise HeadersError(f"{root} has {len(folders)} folders of headers")
    return folders[0]


def _make_movable(tree: Path, root: Path) -> None:
    """Debian's build folder names the place of the common one; SystemTap looks for that by a link."""
    build = _build(tree)
    makefile = build / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{root}/usr/src/"))
    variables = build / ".kernelvariables"
    if variables.exists():
        variables.write_text(re.sub(r"\bgcc-(\d+)", _compiler, variables.read_text()))
    common = next(tree.glob("usr/src/linux-headers-*-common"), None)
    if common:
        (build / "source").symlink_to(f"../{common.name}")


def _compiler(named: re.Match[str]) -> str:
    """An older compiler, of another release of Debian, can be replaced by this system's. A newer one knows options that
    this one does not."""
    own = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True).stdout
    return "gcc" if int(named[1]) < int(own.split(".")[0]) else named[0]
