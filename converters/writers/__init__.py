"""Writers turn a `Profile` into bytes: one module or folder per output format; `base.protocol` is the interface."""
