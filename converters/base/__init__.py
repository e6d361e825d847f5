"""Shared by all commands: errors, options and help, printable text, formatted numbers, safe files."""
