"""Estimators with scikit-learn's interface: classifiers, mixtures, hidden Markov models and projections."""
