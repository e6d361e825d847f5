"""Profilers of Python programs."""
