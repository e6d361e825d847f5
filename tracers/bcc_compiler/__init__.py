"""bcc, the compiler of what is only known when it is asked for."""
