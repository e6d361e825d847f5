"""CSV reports of VTune."""
