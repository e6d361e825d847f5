"""Output of SystemTap: backtraces of any script, and the lines of this project's own."""
