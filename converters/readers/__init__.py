"""One file per input format: a stream in, a Profile out; `detect` chooses by the first bytes.

A reader is a module with ``sniff(head) -> bool``, which looks at the first bytes of the unpacked input, and
``read(source, options) -> Profile``. It raises StallscopeError, and nothing else, for input that it cannot read; what
it skips is counted in ``Profile.lost``, and a comment names the first line that was skipped.
"""
