"""Reads other processes, and files that they chose, in a process that can be abandoned."""
