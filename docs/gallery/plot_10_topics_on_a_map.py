"""
Topics on a map
===============

Short tales of four subjects. The topics that are found lie the nearer to each other the more their words agree.
"""

import numpy as np

from deciban import TopicModel, plots

subjects = [
    ["ship", "sail", "sea", "harbour", "captain", "storm", "wave", "anchor"],
    ["wolf", "sheep", "forest", "shepherd", "night", "howl", "flock", "hill"],
    ["bread", "oven", "flour", "baker", "dough", "salt", "yeast", "loaf"],
    ["king", "crown", "castle", "knight", "throne", "sword", "queen", "banner"],
]
rng = np.random.default_rng(0)
shares = rng.dirichlet(np.full(4, 0.15), 300)
habits = [rng.dirichlet(np.full(8, 2.0)) for _ in subjects]
texts = [" ".join(rng.choice(subjects[t], p=habits[t]) for t in rng.choice(4, 40, p=p)) for p in shares]
model = TopicModel(4, random_state=0).fit(texts)
plots.topic_map(model)

# %%
# The words of the first topic.
plots.topic_words(model, 0)
