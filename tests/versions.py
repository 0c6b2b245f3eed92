"""A mark of tests that need the version of scikit-learn for which the drop-ins are made."""

import pytest

from deciban.sklearn.dropin import supported

with_tested_sklearn = pytest.mark.skipif(not supported(), reason="the drop-ins are made for another scikit-learn")
