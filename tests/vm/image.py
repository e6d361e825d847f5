"""Build of what QEMU boots, from packages or a source tree: an uncompressed kernel, its modules, an initramfs."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import zstandard
from archive import fetch, fetch_named
from kernels import Kernel, cache_folder

HERE = Path(__file__).resolve().parent
BUSYBOX = Path("/bin/busybox")
_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "virtiofs", "overlay", "virtio_rng")
"""Modules that the guest needs before it can see the host's files. A kernel may have them built in, or not at all."""
_XZ, _ZSTD, _LZ4 = b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"\x02\x21\x4c\x18"


class ImageError(Exception):
    """No image could be made, and why."""


@dataclass(frozen=True)
class Image:
    """A kernel ready to boot. ``root`` has its lib/modules, if it has modules. ``version``: release and package."""

    kernel: Kernel
    version: str
    vmlinux: Path
    initramfs: Path
    root: Path


def build(kernel: Kernel) -> Image:
    """The image of a kernel, out of the cache where it is there."""
    return _from_source(kernel) if kernel.from_source else _from_packages(kernel)


def _from_packages(kernel: Kernel) -> Image:
    debs = fetch(kernel.suite, kernel.package)
    if not debs:
        raise ImageError(f"{kernel.suite} has no kernel behind {kernel.package}")
    key = hashlib.sha256(" ".join(sorted(deb.name for deb in debs)).encode()).hexdigest()[:16]
    root = cache_folder() / "images" / f"{kernel.name}-{key}"
    for old in root.parent.glob(f"{kernel.name}-{'[0-9a-f]' * 16}"):
        if old != root:
            shutil.rmtree(old, ignore_errors=True)
    once(root, lambda folder: _unpack(debs, folder))
    release = next((root / "lib" / "modules").iterdir()).name
    version = debs[0].name.split("_")[1].replace("%3a", ":")
    return Image(kernel, f"{release} ({version})", root / "vmlinux", _initramfs(root, release), root)


def _unpack(debs: list[Path], folder: Path) -> None:
    for deb in debs:
        subprocess.run(["dpkg", "-x", deb, folder], check=True)
    if not (folder / "lib").exists():  # since Debian 13 the modules are below usr
        (folder / "lib").symlink_to("usr/lib")
    (release,) = os.listdir(folder / "lib" / "modules")
    images = [*folder.glob("boot/vmlinuz-*"), *folder.glob(f"lib/modules/{release}/vmlinuz")]
    if not images:
        raise ImageError(f"no kernel image in {', '.join(deb.name for deb in debs)}")
    (folder / "vmlinux").write_bytes(_uncompressed(images[0].read_bytes()))
    subprocess.run(["/sbin/depmod", "-b", folder, release], check=True)


def _uncompressed(image: bytes) -> bytes:
    """The ELF file in a bzImage: booting it saves seconds of decompression under emulation."""
    ways: dict[bytes, Callable[[bytes], bytes]] = {
        _XZ: lambda data: lzma.LZMADecompressor().decompress(data),
        _ZSTD: lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
        # The stream ends in the middle of the image, which lz4 takes for damage.
        _LZ4: lambda data: subprocess.run(["lz4", "-dcq"], input=data, stdout=PIPE, stderr=DEVNULL).stdout,
    }
    for magic, decompress in ways.items():
        at = -1
        while (at := image.find(magic, at + 1)) >= 0:
            try:
                return _elf(decompress(image[at:]))
            except (lzma.LZMAError, zstandard.ZstdError, ImageError):
                continue
    raise ImageError("the kernel image is compressed by none of xz, zstd and lz4")


def _elf(data: bytes) -> bytes:
    if not data.startswith(b"\x7fELF"):
        raise ImageError("no ELF file")
    return data


def _from_source(kernel: Kernel) -> Image:
    """Compiled from a package of the source, or from ``KERNEL_SRC``; without that, the image that was compiled last."""
    key = hashlib.sha256(b"".join(each.read_bytes() for each in kernel.fragments)).hexdigest()[:16]
    images = cache_folder() / "images"
    if kernel.suite:
        root = _from_source_package(kernel, key)
    elif tree := os.environ.get("KERNEL_SRC", ""):
        version = _version_of(Path(tree), kernel)
        root = once(images / f"{version}-{key}", lambda folder: _compile(Path(tree).resolve(), kernel, folder))
    else:
        kept = sorted(images.glob(f"{kernel.series}.*-{key}"), key=lambda folder: folder.stat().st_mtime)
        if not kept:
            raise ImageError(f"{kernel.name} is built from source: name its source tree with KERNEL_SRC=FOLDER")
        root = kept[-1]
    version = root.name.rpartition("-")[0]
    return Image(kernel, f"{version} (from source)", root / "vmlinux", _initramfs(root, ""), root)


def _from_source_package(kernel: Kernel, key: str) -> Path:
    (package,) = fetch_named(kernel.suite, [kernel.package])
    version = package.name.split("_")[1].replace("%3a", ":")

    def fill(folder: Path) -> None:
        tree = folder / "source"
        tree.mkdir()
        subprocess.run(["dpkg", "-x", package, tree], check=True)
        (archive,) = tree.glob("usr/src/linux-source-*.tar.xz")
        subprocess.run(["tar", "-xJf", archive, "-C", tree, "--strip-components=1"], check=True)
        _compile(tree, kernel, folder)
        shutil.rmtree(tree)

    return once(cache_folder() / "images" / f"{version}-{key}", fill)


def _version_of(tree: Path, kernel: Kernel) -> str:
    if not (tree / "Kconfig").exists():
        raise ImageError(f"KERNEL_SRC={tree} is no source tree of the kernel")
    version = subprocess.run(["make", "-s", "kernelversion"], cwd=tree, capture_output=True, text=True).stdout.strip()
    if version.split(".")[:2] != kernel.series.split("."):
        raise ImageError(f"KERNEL_SRC={tree} is {version or 'of an unknown version'}, not {kernel.name}")
    return version


def _compile(tree: Path, kernel: Kernel, folder: Path) -> None:
    """Minutes. The objects go to a folder beside the image, not into the tree."""
    objects = folder / "objects"
    objects.mkdir()
    make = ["make", "-s", "-C", str(tree), f"O={objects}"]
    merge = [str(tree / "scripts/kconfig/merge_config.sh"), "-m", "-O", str(objects), str(objects / ".config")]
    log = folder / "build.log"
    with log.open("wb") as output:
        for step in (
            [*make, "tinyconfig"],
            [*merge, *map(str, kernel.fragments)],
            [*make, "olddefconfig"],
            [*make, f"-j{os.cpu_count()}", "vmlinux", "modules"],  # the latter makes Module.symvers
        ):
            if subprocess.run(step, stdout=output, stderr=output, stdin=subprocess.DEVNULL).returncode:
                kept = shutil.copy(log, cache_folder() / "kernel-build.log")
                raise ImageError(f"{' '.join(step)} failed: see {kept}")
        subprocess.run(["strip", objects / "vmlinux", "-o", folder / "vmlinux"], check=True)
    _keep_build_folder(tree, objects, folder / "build")
    shutil.rmtree(objects)


def _keep_build_folder(tree: Path, objects: Path, folder: Path) -> None:
    """Keeps, of sources and objects, what it takes to build a module."""
    for top in (tree, objects):
        for name in ("include", "scripts", "arch/x86/include"):
            shutil.copytree(top / name, folder / name, symlinks=True, dirs_exist_ok=True)
    for file in (tree / "Makefile", *tree.glob("arch/x86/Makefile*"), objects / "tools/objtool/objtool"):
        to = folder / file.relative_to(objects if file.is_relative_to(objects) else tree)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
    for name in (".config", "Module.symvers", "System.map"):
        shutil.copy(objects / name, folder / name)


def once(folder: Path, fill: object) -> Path:
    """The folder, filled by a call of ``fill`` unless it is there: complete, or not at all."""
    assert callable(fill)
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        fill(new)
        try:
            new.rename(folder)
        except OSError:
            if not folder.exists():  # else somebody was faster
                raise
    return folder


def _initramfs(root: Path, release: str) -> Path:
    """Busybox, the modules that are needed to see the host's files, and `init`. Made anew when `init` has changed."""
    script = (HERE / "guest_init.sh").read_bytes()
    name = hashlib.sha256(script + " ".join(_MODULES).encode() + BUSYBOX.read_bytes()).hexdigest()[:16]
    target = root / f"initramfs-{name}.cpio"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=root) as temporary:
        tree = Path(temporary) / "tree"
        (tree / "modules").mkdir(parents=True)
        (tree / "init").write_bytes(script)
        (tree / "init").chmod(0o755)
        shutil.copy(BUSYBOX, tree / "busybox")
        files = _module_files(root, release) if release else []
        for number, file in enumerate(files):
            (tree / "modules" / f"{number:02}.ko").write_bytes(_module(file))
        archive = Path(temporary) / "archive"
        listing = subprocess.run(["find", "."], cwd=tree, check=True, capture_output=True).stdout
        with archive.open("wb") as output:
            subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=tree, input=listing, stdout=output, check=True)
        archive.rename(target)
    return target


def _module_files(root: Path, release: str) -> list[Path]:
    """Files of modules in the order in which they have to be loaded."""
    files: list[Path] = []
    for name in _MODULES:
        shown = subprocess.run(
            ["/sbin/modprobe", "-d", root, "-S", release, "--show-depends", name], capture_output=True, text=True
        )
        for line in shown.stdout.splitlines():
            kind, _, path = line.strip().partition(" ")
            if kind == "insmod" and Path(path) not in files:
                files.append(Path(path))
    return files


def _module(file: Path) -> bytes:
    data = file.read_bytes()
    return lzma.decompress(data) if file.suffix == ".xz" else data
