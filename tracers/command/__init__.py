"""Code shared by the commands: options and the output of results."""
