"""A small model is used once when it is loaded: contradictions are found without a check of their own."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deciban import Gaussian, GenerativeClassifier, Mixture, load, release, save
from deciban.errors import DecibanError, HyperparameterError, ModelFileError, NotAvailableError
from deciban.read.columns import Column
from deciban.sklearn import LinearDiscriminantAnalysis, MultinomialNB
from deciban.statistics import Stats
from deciban.store import checks, classifier, models, trial
from store.answers import given
from store.models import FAMILIES, fitted, y
from store.test_loading import forged, model_of

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.deciban"


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_no_step_of_the_trial_is_refused(name, released, monkeypatch):
    """A trial whose rows the model refuses would try nothing."""
    steps = []

    def counted(use):
        steps.append(use)
        return use()

    monkeypatch.setattr(trial, "_guarded", counted)
    clf, _ = fitted(name)
    hidden = released or name == "mixture"  # does not learn, or does not unlearn
    try:
        trial.tried(release(clf) if released else clf)
    except NotAvailableError:
        assert hidden
    assert len(steps) >= (6 if hidden else 9)


def test_the_trial_leaves_the_model_as_it_was(path, recwarn):
    for golden in sorted(GOLDEN.glob("*.deciban")):
        if golden.stem != "ledger-1":
            save(load(golden), path)
            before = path.read_bytes()
            save(load(path), path)
            assert path.read_bytes() == before, golden.stem
    assert not [str(each.message) for each in recwarn]


# -- faults whose own checks are taken away ----------------------------------------------------------------------------
def rename_a_component(content, names, body):
    labels = model_of(content)["stats"]["family"]["mixing"]["labels"]["items"][0][1]
    labels["names"]["items"][0]["items"][0] = "another"
    return body


def rename_the_features(content, names, body):
    axis = next(axis for name, axis in model_of(content)["stats"]["family"]["labels"]["items"] if name == "feature")
    axis["names"] = {"@": "tuple", "items": [f"column {at}" for at in range(4)]}
    axis["declared"] = 0
    return body


def retype_the_levels(content, names, body):
    next(entry for name, entry in names.items() if name.endswith(".levels"))["dtype"] = "U64"
    return body


def mixture():
    return GenerativeClassifier(Mixture(Gaussian(), 2)).fit(FAMILIES["diagonal"][1], y)


def diagonal():
    return GenerativeClassifier(Gaussian("diagonal")).fit(FAMILIES["diagonal"][1], y)


def with_interactions():
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (200, 2)), columns=["a", "b"]).astype(str)
    return release(GenerativeClassifier(interactions=[("a", "b")]).fit(rows, (rows["a"] == rows["b"]).to_numpy()))


def nothing(*given):
    """A check that finds nothing."""


UNCHECKED = {  # how a model is made, how its file is changed, and the check that would find it
    "a component that the sums do not have": (mixture, rename_a_component, (checks, "SAME_CLASSES", ())),
    "features that no column has": (diagonal, rename_the_features, (classifier, "check_empty_batch", nothing)),
    "levels that are no integers": (with_interactions, retype_the_levels, (classifier, "_check_density", nothing)),
}


@pytest.mark.parametrize("name", UNCHECKED)
def test_the_trial_finds_what_no_check_looks_for(name, path, monkeypatch):
    make, change, absent = UNCHECKED[name]
    save(make(), path)
    monkeypatch.setattr(*absent)
    load(path)
    forged(path, change)
    with pytest.raises(ModelFileError, match=r"model\.deciban: the file is inconsistent.*verify=False") as caught:
        load(path)
    assert caught.value.__cause__ is not None
    assert not isinstance(caught.value.__cause__, DecibanError)
    load(path, verify=False)  # trusted


def test_a_large_model_is_not_tried(path, monkeypatch):
    save(diagonal(), path)
    monkeypatch.setattr(Stats, "without", lambda *given: 1 / 0)
    with pytest.raises(ModelFileError, match="ZeroDivisionError"):
        load(path)
    monkeypatch.setattr(models, "TRIED", 0)
    load(path)


# -- found on the way --------------------------------------------------------------------------------------------------
def test_a_mixture_of_a_former_version_goes_on_learning():
    """The sums of its blocks had joined names of columns as keys."""
    golden = GOLDEN / "clusters-mixed-1.deciban"
    X, model = given(json.loads(golden.with_suffix(".json").read_text())), load(golden)
    weight = model.fitted_.counts.sum()
    assert model.partial_fit(X).fitted_.counts.sum() == pytest.approx(weight + len(X))


@pytest.mark.parametrize("change", [{"format": "\udcff"}, {"format": "%Q"}, {"parts": ("eon",)}])
def test_forms_of_dates_are_known_ones(change):
    with pytest.raises(HyperparameterError, match="column 'when'"):
        Column("when", "date", "declared by you", **change)


def test_without_pseudo_counts_there_is_no_leave_one_out():
    clf = MultinomialNB(alpha=0.0).fit([[1, 2], [2, 1], [3, 1]], ["a", "b", "a"])
    with pytest.raises(NotAvailableError, match="MultinomialNB with these parameters"):
        clf.leave_one_out([[1, 2]], ["a"])


def test_no_rows_of_a_component_can_be_drawn():
    clf = GenerativeClassifier(Mixture(Gaussian("diagonal"), 2), rule="predictive").fit(FAMILIES["diagonal"][1], y)
    assert clf.sample(1, random_state=0)[0].shape == (1, 4)


@pytest.mark.parametrize("error", [MemoryError("no room"), OSError("no disk"), ImportError("no library")], ids=repr)
def test_errors_of_the_machine_are_not_said_to_be_those_of_the_file(error, path, monkeypatch):
    save(diagonal(), path)

    def fail(*given):
        raise error

    monkeypatch.setattr(Stats, "without", fail)
    if isinstance(error, ImportError):
        load(path)
        return
    with pytest.raises(type(error), match="no "):
        load(path)


def test_without_columns_that_vary_there_is_no_leave_one_out():
    X = FAMILIES["diagonal"][1]
    analysis = LinearDiscriminantAnalysis().fit(X, y).set_params(tol=100.0)
    with pytest.raises(NotAvailableError, match=r"tol=100"):
        analysis.leave_one_out(X[:2], y[:2])
