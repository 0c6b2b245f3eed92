"""Models of frames and files: nothing but the label's name, and the same model wherever the rows come from."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from deciban import Binned, Categorical, Gaussian, GaussianWithGaps, GenerativeClassifier, Transformed, load
from deciban.errors import DomainError, InputError, MergeError, NotAvailableError, NotLearntError
from deciban.read.files import open_source
from deciban.read.tables import HEAD, Table


def mixed(n, seed=0):
    """Every kind of column, with gaps, and a label that they tell."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    gap = rng.random((n, 3)) < 0.05
    colour = np.array(["red", "white", "blue", "grey"])[np.minimum(rng.poisson(y), 3)].astype(object)
    colour[gap[:, 0]] = None
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "colour": colour,
            "smokes": np.where(rng.random(n) < 0.2 + 0.2 * y, "y", "n"),
            "visits": rng.poisson(2.0 + y),
            "income": np.where(gap[:, 1], np.nan, np.exp(rng.normal(3 + 0.3 * y, 0.5)).round(2)),
            "size": rng.normal(y, 1.0).round(3),
            "seen": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300 * 24, n), unit="h"),
            "species": np.array(["cat", "dog", "owl"])[y],
        }
    )


SMALL = mixed(400)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """The same rows in several formats, more of them than choices are taken from."""
    folder, frame = tmp_path_factory.mktemp("rows"), mixed(HEAD + 30_000)
    frame.to_csv(folder / "rows.csv", index=False)
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "rows.parquet", row_group_size=7001)
    return frame, folder / "rows.csv", folder / "rows.parquet"


def small_csv(folder, frame=SMALL, name="small.csv"):
    frame.to_csv(folder / name, index=False)
    return folder / name


@pytest.mark.slow
def test_a_file_of_any_size_gives_the_model_of_the_same_rows_in_memory(paths):
    frame, *files = paths
    memory = GenerativeClassifier().fit(frame, "species")
    for path in files:
        clf = GenerativeClassifier().fit(path, "species")
        assert clf.family_ == memory.family_
        assert clf.stats_.same(memory.stats_)
        assert clf.calibration_.agrees(memory.calibration_)
        np.testing.assert_array_equal(clf.predict_proba(path), memory.predict_proba(frame))
    assert memory.stats_.rows.sum() == len(frame)


def test_the_label_may_be_a_column_or_apart():
    inside = GenerativeClassifier().fit(SMALL, "species")
    apart = GenerativeClassifier().fit(SMALL.drop(columns="species"), SMALL["species"])
    assert inside.stats_.same(apart.stats_)
    np.testing.assert_array_equal(inside.predict(SMALL), apart.predict(SMALL.drop(columns="species")))
    assert (inside.predict(SMALL) == SMALL["species"]).mean() > 0.6


def test_what_columns_are_and_why_is_kept_and_shown():
    clf = GenerativeClassifier().fit(SMALL, "species")
    assert {c.name: c.kind for c in clf.schema_.columns} == {
        "id": "identifier",
        "colour": "category",
        "smokes": "yes/no",
        "visits": "count",
        "income": "number",
        "size": "number",
        "seen": "date",
    }
    assert "ignored" in str(clf.schema_["id"])
    assert clf.families_["colour"] == "Categorical(): categories"
    assert "log-normal (fits best)" in clf.families_["income"]
    place = clf.family_.keys.index(("income",))
    assert "decibans over" in clf.model_.reasons[place].detail
    assert {"seen.month", "seen.weekday", "seen.hour"} <= set(clf.families_)
    assert clf.calibration_ is not None


def test_columns_can_be_declared_by_kind_by_family_and_in_blocks():
    kinds = {"visits": "category", "income": "binned", "seen": "identifier", ("size",): Gaussian("tied")}
    clf = GenerativeClassifier(kinds=kinds).fit(SMALL, "species")
    families = {key[0]: family for key, family in zip(clf.family_.keys, clf.family_.families.values())}
    assert isinstance(families["visits"], Categorical)
    assert isinstance(families["income"], Binned)
    assert families["size"].structure == "tied"
    assert not any(name.startswith("seen") for name in families)
    assert clf.families_["income"].endswith("named by you")


def test_named_families_read_a_file_too(tmp_path):
    path = small_csv(tmp_path)
    families = {"income": Transformed("log"), "colour": Categorical()}
    clf, memory = (
        GenerativeClassifier(families).fit(X, "species") for X in (path, SMALL[["income", "colour", "species"]])
    )
    np.testing.assert_array_equal(clf.stats_.rows, memory.stats_.rows)
    np.testing.assert_allclose(clf.predict_proba(path), memory.predict_proba(SMALL[["income", "colour"]]), rtol=1e-12)


def test_numbers_that_vary_together_are_one_block():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 600)
    base = rng.normal(size=600)
    frame = pd.DataFrame({"a": base + 0.3 * y, "b": base - 0.3 * y + rng.normal(0, 0.2, 600), "y": y})
    clf = GenerativeClassifier().fit(frame, "y")
    assert list(clf.families_) == [("a", "b")]
    assert "vary together" in clf.families_["a", "b"]
    frame.loc[0, "a"] = np.nan
    assert set(GenerativeClassifier().fit(frame, "y").families_) == {"a", "b"}, "blocks have no gaps"


def test_a_gap_after_the_first_rows_leaves_columns_by_themselves(tmp_path):
    rng = np.random.default_rng(3)
    n = HEAD + 200
    y = rng.integers(0, 2, n)
    base = rng.normal(size=n)
    frame = pd.DataFrame({"a": base + 0.3 * y, "b": base - 0.3 * y + rng.normal(0, 0.2, n), "y": y}).round(4)
    assert list(GenerativeClassifier().fit(frame, "y").families_) == [("a", "b")]
    frame.loc[n - 1, "a"] = np.nan
    clf = GenerativeClassifier().fit(small_csv(tmp_path, frame), "y")
    assert set(clf.families_) == {"a", "b"}
    assert clf.stats_.rows.sum() == n
    assert clf.stats_.same(GenerativeClassifier().fit(frame, "y").stats_)


def test_a_block_with_gaps_by_hand_says_what_it_cannot_do(tmp_path):
    path = small_csv(tmp_path)
    clf = GenerativeClassifier(kinds={("income", "size"): GaussianWithGaps()}).fit(path, "species")
    assert clf.families_["income", "size"].endswith("named by you")
    assert clf.calibration_ is None
    assert np.isfinite(clf.predict_proba(path)).all()
    with pytest.raises(NotAvailableError, match="cannot be unlearnt or left out exactly"):
        clf.unlearn(path, "species")


def test_learning_and_taking_back_by_file_name_leaves_the_sums_as_they_were(tmp_path):
    first, more = mixed(300, 1), mixed(200, 2)
    more.loc[0, "colour"] = "a new one"
    more.loc[1, "species"] = "newt"
    path = small_csv(tmp_path, more)
    clf = GenerativeClassifier().fit(first, "species")
    before = clf.stats_
    clf.learn(path, "species")
    assert "newt" in clf.classes_
    assert np.isfinite(clf.predict_proba(path)).all()
    clf.unlearn(path, "species")
    for name in ("colour", "smokes", "seen.month"):
        assert clf.stats_.family.blocks[(name,)].same(before.family.blocks[(name,)]), "to the bit where sums are counts"
    np.testing.assert_array_equal(clf.stats_.rows, before.rows)


def test_every_method_takes_a_file_and_the_labels_name(tmp_path):
    path = small_csv(tmp_path)
    clf = GenerativeClassifier().fit(path, "species")
    features, labels = SMALL.drop(columns="species"), SMALL["species"]
    np.testing.assert_array_equal(clf.leave_one_out(path, "species"), clf.leave_one_out(features, labels.to_numpy()))
    assert clf.evaluate(path, "species").log_loss == clf.evaluate(features, labels.to_numpy()).log_loss
    assert clf.evaluate(path, "species", learnt=True).log_loss > 0
    np.testing.assert_array_equal(
        clf.cross_val_predict(path, "species"), clf.cross_val_predict(features, labels.to_numpy())
    )
    np.testing.assert_array_equal(clf.predict(Table.of(features)), clf.predict(features))
    clf.recalibrate(path, "species")
    wrong = SMALL.assign(right=SMALL["species"].where(SMALL.index > 2, "owl"))
    clf.correct(wrong, "species", "right")
    assert clf.stats_.rows[2] == (wrong["right"] == "owl").sum()


def test_a_model_of_a_file_is_a_file_that_answers_to_the_bit(tmp_path):
    path = small_csv(tmp_path)
    clf = GenerativeClassifier().fit(path, "species")
    clf.save(tmp_path / "m.deciban")
    again = load(tmp_path / "m.deciban")
    assert again.schema_ == clf.schema_
    np.testing.assert_array_equal(again.predict_proba(path), clf.predict_proba(path))
    again.learn(path, "species")
    fewer = again.reestimate(columns=["colour", "seen.month"])
    assert fewer.schema_.names == ("colour", "seen")
    assert fewer.predict(SMALL[["colour", "seen"]]).shape == (400,)


def test_a_ledger_knows_rows_wherever_they_come_from(tmp_path):
    path = small_csv(tmp_path)
    clf = GenerativeClassifier(ledger=True).fit(path, "species")
    clf.unlearn(SMALL[:10], "species")
    with pytest.raises(NotLearntError, match="row 0"):
        clf.unlearn(SMALL[:10], "species")
    with pytest.raises(NotLearntError, match="row 3"):
        clf.unlearn(SMALL[10:20].assign(visits=[*SMALL["visits"][10:13], 77, *SMALL["visits"][14:20]]), "species")


def test_gaps_on_both_sides_and_unknown_categories_have_answers():
    clf = GenerativeClassifier().fit(SMALL, "species")
    nothing = pd.DataFrame({name: [None] for name in SMALL.columns if name != "species"})
    prior = clf.stats_.rows / clf.stats_.rows.sum()
    np.testing.assert_allclose(clf.predict_proba(nothing)[0], prior, rtol=1e-12)
    odd = SMALL[:5].assign(colour="never seen", visits=10**6, size=-1e6)
    assert np.isfinite(clf.predict_proba(odd)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"size": "wide"}, r"column 'size' holds 'wide' \(.*late\.csv, line 65602\)"),
        ({"size": "inf"}, r"column 'size' holds 'inf' \(.*late\.csv, line 65602\)"),
        ({"seen": "later"}, r"column 'seen' holds 'later' \(.*late\.csv, line 65602\)"),
        ({"species": ""}, r"column 'species' of labels is missing \(.*late\.csv, line 65602\)"),
    ],
)
def test_a_surprise_after_the_first_rows_is_named_by_line_and_nothing_is_learnt(change, says, tmp_path, paths):
    frame = paths[0][: HEAD + 100].astype(object)
    for name, value in change.items():
        frame.loc[HEAD + 64, name] = value
    path = small_csv(tmp_path, frame, "late.csv")
    clf = GenerativeClassifier()
    with pytest.raises((DomainError, InputError), match=says):
        clf.fit(path, "species")
    assert not hasattr(clf, "stats_")
    source = open_source(path, skip_bad=True)
    clf.fit(source, "species")
    assert source.skipped.rows == 1
    assert clf.stats_.rows.sum() == len(frame) - 1


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("kind", r"no column 'kind'.*it has id, colour"),
        ("specie", "Did you mean 'species'"),
        ("id", "different in each"),
        ("one", "always 'x'"),
    ],
)
def test_a_label_that_is_none_is_refused(label, says, tmp_path):
    path = small_csv(tmp_path, SMALL.assign(one="x"))
    with pytest.raises(InputError, match=says):
        GenerativeClassifier().fit(path, label)


def test_a_file_needs_the_name_of_its_label(tmp_path):
    with pytest.raises(InputError, match="give its name"):
        GenerativeClassifier().fit(small_csv(tmp_path), SMALL["species"])


def test_models_of_two_sites_with_the_same_choices_add_up():
    here, there = mixed(300, 1), mixed(250, 2)
    a = GenerativeClassifier().fit(here, "species")
    b = a.blank().learn(there, "species")
    assert b.stats_.rows.sum() == 250
    both = a + b
    again = GenerativeClassifier().fit(here, "species").learn(there, "species")
    np.testing.assert_allclose(both.predict_proba(there), again.reestimate().predict_proba(there), rtol=1e-9)
    assert both.schema_["colour"].rows == 600
    with pytest.raises(MergeError, match="blank"):
        a + GenerativeClassifier().fit(there, "species")


def test_a_column_that_only_one_site_knows_was_missing_at_the_other():
    here, there = mixed(300, 1), mixed(250, 2)
    kinds = {"visits": "poisson", "income": "log-gaussian", "size": "gaussian"}
    a = GenerativeClassifier(kinds=kinds, calibrate=None).fit(here.drop(columns="colour"), "species")
    b = GenerativeClassifier(kinds=kinds, calibrate=None).fit(there.drop(columns=["smokes", "seen"]), "species")
    both = a.merge(b, keep="left")
    assert set(both.columns_) == {*a.columns_, *b.columns_}
    assert both.stats_.family.blocks[("colour",)].same(b.stats_.family.blocks[("colour",)])
    whole = pd.concat([here.assign(colour=None), there.assign(smokes=None, seen=pd.NaT)])
    assert both.predict_proba(whole[list(both.feature_names_in_)]).shape == (550, 3)
    assert set(both.family_.families) == {*a.family_.families, "colour"}
    np.testing.assert_array_equal(both.stats_.rows, a.stats_.rows + b.stats_.rows)
    unseen = here[list(both.feature_names_in_)].assign(colour=None)
    only = a.reestimate(columns=["smokes"]).llr(here[["smokes"]], "cat", "dog")
    np.testing.assert_allclose(
        both.reestimate(columns=["smokes"]).llr(unseen[["smokes"]], "cat", "dog"), only, rtol=1e-12
    )
