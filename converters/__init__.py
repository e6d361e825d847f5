"""Stack profiles: the model, readers, writers and transforms. Needs no root; never imports tracers."""
