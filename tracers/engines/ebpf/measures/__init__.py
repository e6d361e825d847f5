"""Measures of the engine libbpf: what attaches programs, reads their maps and adds up."""
