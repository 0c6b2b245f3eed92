"""Errors carry where they come from as attributes: row, columns, label and remedy, None where that is not known."""

import pickle

import numpy as np
import pandas as pd
import pytest

from deciban import Categorical, Gaussian, GenerativeClassifier, Poisson, errors
from deciban.errors import DomainError, EmptyClassError, InputError, NotANumberError, NotLearntError, SingularError

N = 40
rng = np.random.default_rng(0)
y = np.array(["ill", "well"] * (N // 2))
FRAME = pd.DataFrame({"size": rng.normal(size=N), "n": rng.poisson(3, N), "depth": rng.normal(size=N)})
HEAD = 65_536  # rows of the first batch of a file


def changed(row, column, value):
    """FRAME with one other value."""
    frame = FRAME.copy()
    frame[column] = frame[column].astype(float)
    frame.loc[row, column] = value
    return frame


def refused(act, kind):
    """The error that `act` raises."""
    with pytest.raises(kind) as found:
        act()
    return found.value


def placed(error, row=None, columns=None, label=None):
    """Whether an error carries this place, and its remedy as the message has it."""
    assert error.row == row
    assert error.columns is columns is None or [str(name) for name in error.columns] == columns
    assert error.label == label
    assert error.remedy
    assert error.remedy in str(error)


def test_a_value_that_no_count_can_have():
    error = refused(
        lambda: GenerativeClassifier({"size": Gaussian(), "n": Poisson()}).fit(changed(17, "n", -3), y), DomainError
    )
    placed(error, 17, ["n"])
    assert "'n' holds -3" in str(error)
    clf = GenerativeClassifier({"size": Gaussian(), "n": Poisson()}).fit(FRAME, y)
    placed(refused(lambda: clf.predict(changed(23, "n", -1)), DomainError), 23, ["n"])
    placed(refused(lambda: clf.learn(changed(5, "n", -1), y), DomainError), 5, ["n"])


def test_an_infinite_value():
    families = {"n": Poisson(), ("depth", "size"): Gaussian("tied")}
    error = refused(lambda: GenerativeClassifier(families).fit(changed(3, "size", np.inf), y), DomainError)
    placed(error, 3, ["size"])


def test_an_array_has_numbers_for_names():
    X = FRAME.to_numpy()
    X[9, 2] = -np.inf
    error = refused(lambda: GenerativeClassifier(Gaussian("diagonal")).fit(X, y), DomainError)
    placed(error, 9, ["2"])


def test_a_missing_value_of_a_full_gaussian():
    families = {"n": Poisson(), ("size", "depth"): Gaussian("full")}
    error = refused(lambda: GenerativeClassifier(families).fit(changed(30, "depth", np.nan), y), DomainError)
    placed(error, 30, ["depth"])


def test_a_value_that_is_not_a_number():
    frame = FRAME.astype(object)
    frame.loc[11, "size"] = "much"
    error = refused(lambda: GenerativeClassifier({"size": Gaussian()}).fit(frame[["size"]], y), NotANumberError)
    placed(error, 11, ["size"])


def test_a_singular_covariance_names_the_columns_of_its_block_and_the_class():
    frame = FRAME.copy()
    frame.loc[y == "well", "depth"] = 2 * frame["size"]
    families = {"n": Poisson(), ("size", "depth"): Gaussian("full")}
    error = refused(lambda: GenerativeClassifier(families, rule="ml").fit(frame, y).predict(frame), SingularError)
    placed(error, None, ["depth"], "well")
    assert "'depth'" in str(error)
    assert "'n'" not in str(error)


def test_a_column_that_does_not_vary_is_named_with_its_class():
    frame = FRAME.copy()
    frame.loc[y == "ill", "depth"] = 2.0
    families = {"n": Poisson(), "depth": Gaussian("diagonal")}
    error = refused(lambda: GenerativeClassifier(families, rule="ml").fit(frame, y).predict(frame), SingularError)
    placed(error, None, ["depth"], "ill")


def test_a_row_that_was_never_learnt():
    clf = GenerativeClassifier(Poisson(), ledger=True).fit(FRAME[["n"]], y)
    rows = pd.DataFrame({"n": [*FRAME["n"][:2], 99]})
    error = refused(lambda: clf.unlearn(rows, ["ill", "well", "ill"]), NotLearntError)
    placed(error, 2, None, error.label)


def test_an_empty_class_is_named():
    declared = ["ill", "well", "unknown"]
    error = refused(
        lambda: GenerativeClassifier(Poisson(), rule="ml", classes=declared).fit(FRAME[["n"]], y).predict(FRAME[["n"]]),
        EmptyClassError,
    )
    assert error.label == "unknown"


def csv(path, rows, **lines):
    """A file of `rows` rows with columns x and label; `lines` are written as given, by number: line_17="…"."""
    x = np.random.default_rng(1).poisson(3, rows)
    text = ["x,label", *(f"{value},{'ab'[i % 2]}" for i, value in enumerate(x))]
    for name, line in lines.items():
        text[int(name.removeprefix("line_")) - 1] = line
    path.write_text("\n".join(text) + "\n")
    return path


def test_a_bad_value_of_a_file_is_placed_by_its_line(tmp_path):
    path = csv(tmp_path / "late.csv", HEAD + 500, line_66002="-3,a")
    error = refused(lambda: GenerativeClassifier({"x": Poisson()}).fit(path, "label"), DomainError)
    placed(error, 66002, ["x"])
    assert "late.csv, line 66002" in str(error)
    csv(tmp_path / "late.csv", HEAD + 500, line_66002="much,a")
    error = refused(lambda: GenerativeClassifier({"x": Poisson()}).fit(path, "label"), DomainError)
    placed(error, 66002, ["x"])
    assert "late.csv, line 66002" in str(error)
    csv(tmp_path / "early.csv", 50, line_7="-3,a")
    error = refused(lambda: GenerativeClassifier({"x": Poisson()}).fit(tmp_path / "early.csv", "label"), DomainError)
    placed(error, 7, ["x"])


def test_a_missing_label_of_a_file_is_placed_by_its_line(tmp_path):
    path = csv(tmp_path / "gap.csv", HEAD + 500, line_65700="3,")
    error = refused(lambda: GenerativeClassifier({"x": Poisson()}).fit(path, "label"), InputError)
    placed(error, 65700, ["label"])
    assert "gap.csv, line 65700" in str(error)


def test_a_row_of_a_file_that_was_never_learnt_is_placed_by_its_line(tmp_path):
    learnt, other = csv(tmp_path / "learnt.csv", 200), csv(tmp_path / "other.csv", 200, line_150="99,a")
    clf = GenerativeClassifier({"x": Categorical()}, ledger=True).fit(learnt, "label")
    error = refused(lambda: clf.unlearn(other, "label"), NotLearntError)
    assert error.row == 150
    assert "line 150" in str(error)


def test_what_is_not_known_is_none():
    error = refused(lambda: GenerativeClassifier({"size": Gaussian()}).fit(FRAME, y[:-1]), InputError)
    assert (error.row, error.columns, error.label) == (None, None, None)


KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DecibanError)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_the_attributes(kind):
    error = kind("what and where")
    assert (str(error), error.row, error.columns, error.label, error.remedy) == ("what and where", *[None] * 4)


def test_attributes_survive_a_process():
    error = refused(
        lambda: GenerativeClassifier({"size": Gaussian(), "n": Poisson()}).fit(changed(17, "n", -3), y), DomainError
    )
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is DomainError
    assert str(again) == str(error)
    placed(again, 17, ["n"])
