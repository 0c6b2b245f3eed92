"""The inverse document frequencies equal those of scikit-learn."""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from deciban import GenerativeClassifier, Text

TEXTS = ["red and blue", "red and green and red", "blue and grey", "and so on", "grey green"] * 3


def test_idf_is_that_of_scikit_learn():
    clf = GenerativeClassifier(Text("multinomial", "log+idf", 1.0)).fit(TEXTS, ["a", "b", "a"] * 5)
    theirs = TfidfVectorizer().fit(TEXTS)
    names = theirs.get_feature_names_out().tolist()
    idf = clf.family_.resolve(clf.stats_.family).idf
    np.testing.assert_allclose(idf.of_words(names), theirs.idf_, rtol=1e-12)
    assert idf.of_words(["mauve"]).tolist() == [np.log(len(TEXTS) + 1) + 1]
