"""Judging the answers: figures, curves and intervals for llrs and log-likelihoods, and calibrators fitted on them."""
