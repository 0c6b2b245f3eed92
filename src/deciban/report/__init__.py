"""The report: a model, its figures and its rows as one self-contained page."""
