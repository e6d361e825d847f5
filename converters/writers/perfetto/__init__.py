"""Perfetto's own format, for ui.perfetto.dev."""
