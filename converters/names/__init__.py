"""Names of functions: demangling, and the parts of a C++ name."""
