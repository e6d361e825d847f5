"""Numbers that engines and the help of their options share: apart, since an engine takes long to import."""

from __future__ import annotations

MEMORY = 400 << 20
"""Bytes that a trace of libbpf may take in user space, about."""
STACK, MOST_STACK = 8192, 65528
"""Bytes of stack that perf copies for each sample: its own default, and the most that the kernel copies."""

MOST_OBJECTS = 1 << 12
"""Files and sockets on which waits are told to be: of more it is not known what they are on."""
MOST_RESENDING = 1 << 12
"""Connections of which segments that were sent again are counted: of others they are told as lost."""
MOST_REFUSALS = 1 << 10
"""Requests for different locks on files, refused between two looks at who has them: more are told as lost."""
