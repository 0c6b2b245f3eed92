"""Models with hidden variables, fitted by EM over any family: mixtures, hidden Markov models, Gaussians with gaps."""
