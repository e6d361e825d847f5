"""Conditions on processes, as ``--when`` takes them: their language, and the processes for which they hold."""
