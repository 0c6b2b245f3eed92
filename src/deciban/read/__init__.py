"""Files and frames, turned into typed columns."""
