"""Files with one CPU profile of V8: .cpuprofile files of Chrome and Node.js, see `v8`."""

from __future__ import annotations

import json

from ...base.errors import StallscopeError
from ...model import Profile
from ..base.json_stream import is_cut
from ..base.options import ReadOptions
from ..base.source import Source
from .v8 import CpuProfile, result

EXPECTED = 'a CPU profile of V8: {"nodes": [{"id": 1, "callFrame": {…}}], "samples": [1], "timeDeltas": [0]}'

_LIMIT = 256 << 20


def sniff(head: bytes) -> bool:
    """Whether it is an object with the nodes of such a profile."""
    if not head.lstrip().startswith(b"{") or b'"traceEvents"' in head:
        return False
    return (b'"nodes"' in head and b'"callFrame"' in head) or (b'"head"' in head and b'"hitCount"' in head)


def read(source: Source, options: ReadOptions) -> Profile:
    """One sample per distinct stack, and a timeline. Raises StallscopeError."""
    data = source.read_all(_LIMIT)
    try:
        document = json.loads(data)
        profile = CpuProfile()
        if "head" in document:
            profile.add_tree(document)
        else:
            profile.add(document)
    except json.JSONDecodeError as error:
        if is_cut(error.doc, error.pos, error.msg):
            source.fail_cut(error.doc.count("\n") + 1)
        source.fail(error.lineno, f"JSON ({error.msg})")
    except UnicodeDecodeError as error:
        if error.end == len(data):
            source.fail_cut(data.count(b"\n") + 1)
        raise StallscopeError(f"{source.name} is no JSON: {error}", "copy it again from where it came from") from None
    except (TypeError, KeyError, ValueError, OverflowError, AttributeError, RecursionError):
        raise StallscopeError(f"{source.name}: expected {EXPECTED}", "--from NAME chooses another format") from None
    return result([((), profile)], timeline=options.timeline)
