"""Names of ioctl commands: what a number means on a device."""
