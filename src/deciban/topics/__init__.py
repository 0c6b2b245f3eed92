"""Topics: what documents are about, found from their words alone."""
