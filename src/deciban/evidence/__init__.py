"""From log-likelihoods to evidence: ratios, posteriors, decisions, class proportions and explanations.

    scores       log-likelihood ratios, posteriors, class proportions of a batch without labels, units of evidence
    decisions    priors and costs; decisions of least expected cost, with an unsure region
    explanation  the llr as a sum of parts, and evidence written as text

All functions take plain arrays, so that they serve any model that has log-likelihoods.
"""
