"""Arguments of functions by name and type, from debug information."""
