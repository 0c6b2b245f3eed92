"""Evidence: from log-likelihoods to ratios, posteriors, decisions and explanations."""
