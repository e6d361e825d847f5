"""The colours of frames, for every picture."""
