"""Plots with matplotlib: `pip install deciban[plots]`.

Every function draws on the axes it is given, or on new ones, and returns them; none shows or saves a figure.

    judging   bayes_error  det  roc  tippett  llr_histogram  reliability  empirical_cross_entropy
    features  class_densities  decision_regions  covariance_ellipses
    evidence  evidence_bars  nomogram
    posteriors  beta  dirichlet
    hidden    clusters  em_trace  state_sequence  topic_map  topic_words  topic_shares

The plots of `judging` take an `Evaluation`, or llrs in nats and whether h1 is true for each row. Evidence is drawn in
decibans. To compare two models, call a function again with `ax=` and `label=`.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("deciban.plots needs matplotlib, which is not installed: pip install deciban[plots].") from error

from deciban.plots.densities import beta, class_densities, covariance_ellipses, decision_regions, dirichlet
from deciban.plots.evidence import evidence_bars, nomogram
from deciban.plots.hidden import clusters, em_trace, state_sequence, topic_map, topic_shares, topic_words
from deciban.plots.judging import bayes_error, det, empirical_cross_entropy, llr_histogram, reliability, roc, tippett

__all__ = [
    "bayes_error",
    "beta",
    "class_densities",
    "clusters",
    "covariance_ellipses",
    "decision_regions",
    "det",
    "dirichlet",
    "em_trace",
    "empirical_cross_entropy",
    "evidence_bars",
    "llr_histogram",
    "nomogram",
    "reliability",
    "roc",
    "state_sequence",
    "tippett",
    "topic_map",
    "topic_shares",
    "topic_words",
]
