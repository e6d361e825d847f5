"""Tables of functions and of stacks, for a terminal and for Markdown."""
