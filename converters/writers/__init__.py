"""One file per output format: Profile in, bytes out."""
