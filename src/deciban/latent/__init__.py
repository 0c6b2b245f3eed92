"""Hidden variables: one EM loop over any family."""
