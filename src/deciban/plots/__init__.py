"""Pictures of evidence, with matplotlib: `pip install deciban[plots]`.

Every function draws on the axes it is given, or on new ones, and returns them; none shows or saves anything.

    judging answers   bayes_error  det  roc  tippett  llr_histogram  reliability  empirical_cross_entropy
    how a model sees  class_densities  decision_regions  covariance_ellipses
    one answer        evidence_bars  nomogram
    parameters        beta  dirichlet
    hidden variables  clusters  em_trace  state_sequence
    topics            topic_map  topic_words  topic_shares

Those that judge answers take an `Evaluation`, or llrs in nats and whether each row is of h1. Evidence is drawn in
decibans. Call one again with `ax=` and `label=` to compare two models.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("deciban.plots needs matplotlib, which is not installed: pip install deciban[plots].") from error

from deciban.plots.features import class_densities, covariance_ellipses, decision_regions
from deciban.plots.hidden import clusters, em_trace, state_sequence
from deciban.plots.judging import bayes_error, det, empirical_cross_entropy, llr_histogram, reliability, roc, tippett
from deciban.plots.nomogram import evidence_bars, nomogram
from deciban.plots.posteriors import beta, dirichlet
from deciban.plots.topics import topic_map, topic_shares, topic_words

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
