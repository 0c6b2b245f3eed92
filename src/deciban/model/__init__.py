"""The model: a value that learns, unlearns, merges and answers."""
