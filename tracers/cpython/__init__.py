"""What is inside a process's Python interpreter."""
