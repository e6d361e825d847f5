"""Measures: specifications, which every engine reads. How one does it is in its own folder."""
