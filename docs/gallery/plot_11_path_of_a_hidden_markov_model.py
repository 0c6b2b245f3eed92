"""
The path of a hidden Markov model
=================================

A casino swaps a fair die for a loaded one now and then. The most probable path of states is computed from the rolls
alone.
"""

from deciban import Categorical, HiddenMarkovModel, plots

dice = {"fair": Categorical.of([1 / 6] * 6), "loaded": Categorical.of([0.1] * 5 + [0.5])}
casino = HiddenMarkovModel.from_densities(dice, start=[0.5, 0.5], transitions=[[0.98, 0.02], [0.05, 0.95]])
rolls, rolled = casino.sample(300, random_state=3)
plots.state_sequence(casino, rolls, rolled)
