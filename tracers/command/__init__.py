"""What the commands share: their options, and what becomes of a result."""
