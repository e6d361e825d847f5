"""The interface of a writer, and its options."""
