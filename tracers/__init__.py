"""One file per command, and the machinery they share in sub-packages."""
