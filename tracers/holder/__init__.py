"""Makes, holds and closes probes on files (uprobes) in a process that can be left alone, and never in a bad moment."""
