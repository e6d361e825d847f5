"""The measures; each states what it needs from the kernel and turns it into rows."""
