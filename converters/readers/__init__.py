"""Readers turn a stream into a `Profile`: one module or folder per input format; `base.protocol` is the interface."""
