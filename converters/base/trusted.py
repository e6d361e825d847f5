"""Whether a path leads to something that only root, or this user, can have put there."""

from __future__ import annotations

import os
import stat

_MAX_LINKS = 40
"""Maximum number of symbolic links on one path, as in the kernel (MAXSYMLINKS)."""


def weak_part(path: str, *, links: bool = True) -> str:
    """The first part of an absolute path that others than root and this user control; "" if there is none.

    That is a file or folder of somebody else, or one to which somebody else can write. In a folder with the sticky bit,
    such as /tmp, others cannot replace what is not theirs: what is in it is looked at by itself. ``links``: symbolic
    links are followed; otherwise one is a weak part. OSError if a part does not exist.
    """
    trusted = {0, os.geteuid()}
    done, names = "/", [name for name in reversed(path.split("/")) if name]
    followed = 0
    if _is_weak(os.lstat("/"), trusted, is_last=not names):
        return "/"
    while names:
        name = names.pop()
        if name == ".":
            continue
        if name == "..":
            done = os.path.dirname(done)
            continue
        part = os.path.join(done, name)
        status = os.lstat(part)
        if stat.S_ISLNK(status.st_mode):
            followed += 1
            if not links or status.st_uid not in trusted or followed > _MAX_LINKS:
                return part
            target = os.readlink(part)
            names += [each for each in reversed(target.split("/")) if each]
            done = "/" if target.startswith("/") else done
            continue
        if _is_weak(status, trusted, is_last=not names):
            return part
        done = part
    return ""


def _is_weak(status: os.stat_result, trusted: set[int], *, is_last: bool) -> bool:
    if status.st_uid not in trusted:
        return True
    others = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != 0)
    return bool(others) and (is_last or not status.st_mode & stat.S_ISVTX)
