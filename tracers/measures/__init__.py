"""Things that can be measured; each says what it needs of the kernel and turns it into rows."""
