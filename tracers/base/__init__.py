"""Host and terminal functions for every tracer: privileges, choice of processes, Ctrl-C, progress."""
