"""Text to word numbers, and word numbers to counts, rows and scores."""
