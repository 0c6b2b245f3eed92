"""What is loaded is what was saved, or it is refused: damaged, forged, foreign, or newer."""

import importlib
import json
import os
import pickle
import re
import subprocess
import sys
from dataclasses import is_dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from deciban import (
    Categorical,
    Fisher,
    Gaussian,
    GenerativeClassifier,
    HMMClassifier,
    Mixture,
    Multinomial,
    Text,
    TopicModel,
    Transformed,
    load,
    release,
    save,
)
from deciban.errors import DecibanError, HyperparameterError, ModelFileError, NotAvailableError
from deciban.families.product import Product
from deciban.sklearn import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from deciban.store import container, models, registry
from deciban.store.codec import PLAIN
from deciban.store.models import KEYS
from store.answers import OTHER, answers, given
from store.models import COUNTS, FAMILIES, fitted, y
from versions import with_tested_sklearn

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.deciban"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.deciban"


def forged(path, change=lambda model, names, body: body):
    """The file with its header and arrays changed, and signed again."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    names, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    model = json.loads(names["__metadata__"]["model"])
    body = change(model, names, body)
    digest = blake2b(body, digest_size=32).hexdigest()
    meta = {"deciban": "1", "header": "0" * 64, "data": digest, "model": json.dumps(model)}
    text = json.dumps({**names, "__metadata__": meta}, separators=(",", ":")).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + container._signed(text) + body)


# what the answers of the first golden files leave out
FIRST = {
    "mixed-1": {"input": "object"},
    "mixed-released-1": {"input": "object"},
    "words-1": {"input": "object"},
    "ledger-1": {"key": "the golden key"},
}
EXACT = {"classes", "sums", "predict", "top_words"}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_files_of_every_version_load_for_ever(golden, path):
    asked = json.loads(golden.with_suffix(".json").read_text()) | FIRST.get(golden.stem, {})
    questions = [name for name in asked if name not in OTHER]
    assert questions
    found = answers(golden, asked, questions)
    for name in questions:
        if name in EXACT:
            assert found[name] == asked[name], name
        else:
            np.testing.assert_allclose(found[name], asked[name], rtol=1e-12, err_msg=name)
    model = load(golden, key=asked.get("key"))
    save(model, path)  # a file that was written again holds the same model
    for name, answer in answers(path, asked, questions).items():
        np.testing.assert_array_equal(answer, found[name], err_msg=name)
    if hasattr(model, "stats_"):
        assert model.stats_ is None or load(path).stats_.same(model.stats_)


def test_every_family_statistic_and_density_is_in_a_golden_file():
    """But for the bases that others derive from."""
    for package in registry.PACKAGES:
        for module in registry.classes_by_module(f"deciban.{package}"):
            importlib.import_module(module)
    every = {cls for cls in registry.descendants(registry.ROOTS) if cls.__module__.startswith("deciban.")}
    leaves = {cls.__name__ for cls in every if is_dataclass(cls) and not every & set(cls.__subclasses__())}
    assert len(leaves) > 40
    headers = "".join(container.open_container(golden).model for golden in GOLDEN)
    stored = {registry.FORMERLY.get(name, name) for name in re.findall(r'"@":"(\w+)"', headers)}
    assert leaves - stored == set()


def test_the_module_of_every_stored_class_is_found_by_its_name_without_imports():
    by_module = {}
    for package in registry.PACKAGES:
        by_module |= registry.classes_by_module(f"deciban.{package}")
    for module in by_module:
        importlib.import_module(module)
    stored = {cls: name for cls, name in registry.names().items() if ".kernels" not in cls.__module__}
    assert len(stored) > 200
    assert not [cls for cls, name in stored.items() if name not in by_module[cls.__module__]]


def test_a_golden_ledger_still_knows_its_rows():
    golden = next(path for path in GOLDEN if path.stem.startswith("ledger"))
    clf = load(golden, key="the golden key")
    rows = np.array(json.loads(golden.with_suffix(".json").read_text())["rows"])
    labels = ["no", "yes", "yes", "no", "yes", "no", "yes", "no"]
    clf.unlearn(rows, labels).unlearn(rows, labels)
    assert (len(clf.ledger_), clf.stats_.rows.sum()) == (0, 0)


# -- damage ----------------------------------------------------------------------------------------------------------
def test_every_flipped_bit_and_every_cut_is_seen(path):
    save(Multinomial().fit([[1, 2, 3]]), path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[at] ^= 1 << (at % 8)
        for data in (bytes(changed), whole[:at]):
            path.write_bytes(data)
            with pytest.raises(ModelFileError):
                load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ModelFileError, match="bytes"):
        load(path)


def test_names_of_columns_that_are_a_list_are_refused(path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 1.5, 1.0, 2.0]})
    save(GenerativeClassifier(Gaussian("diagonal"), calibrate=None).fit(frame, [0, 0, 1, 1]), path)

    def change(model, names, body):
        fitted = dict(model["model"]["fitted"]["items"])
        fitted["feature_names_in_"] = fitted["feature_names_in_"]["values"]
        model["model"]["fitted"]["items"] = list(map(list, fitted.items()))
        return body

    forged(path, change)
    with pytest.raises(ModelFileError, match="feature_names_in_"):
        load(path)


def test_a_newer_version_is_refused_with_advice(path):
    save(Multinomial().fit([[1, 2, 3]]), path)
    path.write_bytes(path.read_bytes().replace(b'"deciban":"1"', b'"deciban":"2"', 1))
    with pytest.raises(ModelFileError, match=r"format 2; this deciban reads format 1.*upgrade"):
        load(path)


@pytest.mark.parametrize("content", [b"", b"x", b"PK\x03\x04" * 100, pickle.dumps(print), b'{"a": 1}' * 50])
def test_another_file_is_not_a_model(content, path):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a model file"):
        load(path)


def test_somebody_elses_safetensors_are_not_a_model(path):
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(3)}, path, metadata={"deciban": "no"})
    with pytest.raises(ModelFileError, match="not a model file"):
        load(path)


def test_a_file_that_is_not_there_is_named(path):
    with pytest.raises(FileNotFoundError, match=r"model\.deciban"):
        load(path)


# -- forgery ---------------------------------------------------------------------------------------------------------
def entry(names, name, **changes):
    names[name] |= changes


FORGERIES = {
    "another class": lambda m, n, b: m["model"]["family"].update({"@": "Popen"}) or b,
    "a module": lambda m, n, b: m["model"]["family"].update({"@": "subprocess.Popen"}) or b,
    "a class of another role": lambda m, n, b: m["model"].update(family=m["model"]["stats"]) or b,
    "a field too many": lambda m, n, b: m["model"]["family"].update(run="rm") or b,
    "a field too few": lambda m, n, b: m["model"].pop("family") and b,
    "a huge axis": lambda m, n, b: m["model"]["stats"]["labels"]["items"][1][1]["names"].update(size=2**39) or b,
    "a negative axis": lambda m, n, b: m["model"]["stats"]["labels"]["items"][1][1]["names"].update(size=-3) or b,
    "a huge array": lambda m, n, b: entry(n, "stats.counts", shape=[1, 2**39]) or b,
    "a shape that overflows": lambda m, n, b: entry(n, "stats.counts", shape=[2**32, 2**32]) or b,
    "a hole": lambda m, n, b: entry(n, "stats.rows", data_offsets=[32, 40]) or b + bytes(8),
    "an overlap": lambda m, n, b: entry(n, "stats.rows", data_offsets=[16, 24]) or b,
    "another type": lambda m, n, b: entry(n, "stats.counts", dtype="F32") or b,
    "an unknown type": lambda m, n, b: entry(n, "stats.counts", dtype="BF16") or b,
    "an object as names": lambda m, n, b: (
        m["model"]["stats"]["labels"]["items"][0][1].update(names={"@": "tuple", "items": {"all": 1}}) or b
    ),
    "an array twice": lambda m, n, b: m["model"]["stats"]["rows"].update(at="stats.counts") or b,
    "an array unused": lambda m, n, b: m["model"]["stats"].update(rows=[1.0]) or b,
    "no numbers": lambda m, n, b: np.full(len(b) // 8, np.nan).tobytes(),
    "counts below zero": lambda m, n, b: np.full(len(b) // 8, -1.0).tobytes(),
    "a hyper-parameter below zero": lambda m, n, b: m["model"]["family"].update(pseudo_count=-1.0) or b,
    "nesting": lambda m, n, b: m["model"]["family"].update(base=json.loads("[" * 900 + "]" * 900)) or b,
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused(name, path):
    save(Multinomial().fit([[1, 2, 3]]), path)
    forged(path)
    load(path)  # signed again it loads
    forged(path, FORGERIES[name])
    with pytest.raises(ModelFileError, match=r"model\.deciban"):
        load(path)


def test_a_released_table_of_too_few_rows_is_refused(path):
    """A kernel would read beyond its end."""
    save(release(GenerativeClassifier(Multinomial()).fit(sp.csr_array(COUNTS.astype(float)), y)), path)

    def shorter(model, names, body):
        width = 8 * 3
        first = names["fitted.model_.family.density.log_p"]
        first["shape"][0] -= 1
        for each in names.values():
            if "data_offsets" in each:
                each["data_offsets"] = [
                    at - width if at >= first["data_offsets"][1] else at for at in each["data_offsets"]
                ]
        end = first["data_offsets"][1]
        return body[:end] + body[end + width :]

    forged(path, shorter)
    with pytest.raises(ModelFileError, match="the density of Multinomial"):
        load(path)


def test_classes_and_fields_may_be_renamed(path, monkeypatch):
    save(Multinomial(0.5).fit([[1, 2, 3]]), path)
    monkeypatch.setitem(registry.FORMERLY, "Polynomial", "Multinomial")
    monkeypatch.setitem(registry.FORMERLY, "Multinomial.alpha", "pseudo_count")

    def older(model, names, body):
        family = model["model"]["family"]
        family["@"], family["alpha"] = "Polynomial", family.pop("pseudo_count")
        return body

    forged(path, older)
    assert load(path).family == Multinomial(0.5)


@pytest.mark.slow
def test_changed_files_are_refused_or_can_be_used():
    """Ten seconds of what `make fuzz` does for an hour, within limits of memory and time for each file."""
    fuzz = [sys.executable, Path(__file__).with_name("fuzz.py"), "--seconds", "10", "--seed", "0"]
    done = subprocess.run(fuzz, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ends = json.loads(done.stdout.splitlines()[1])
    assert ends["cases"] > 100
    assert ends["refused"] > ends["cases"] / 2
    assert ends["loaded, used"] > 0


def model_of(content):
    """The JSON of the model of a classifier."""
    return dict(content["model"]["fitted"]["items"])["model_"]


CLASSIFIERS = {
    "a range instead of an array": lambda m, n, b: (
        model_of(m)["family"].update(origin={"@": "range", "size": 2**40}) or b
    ),
    "a range as prior": lambda m, n, b: (
        dict_item(m["model"]["parameters"], "prior", {"@": "range", "size": 2**32}) or b
    ),
    "a text as a number": lambda m, n, b: model_of(m)["family"].update(strength="5") or b,
    "no number": lambda m, n, b: model_of(m)["family"].update(kappa={"@": "float", "value": "nan"}) or b,
    "a whole number that numpy cannot hold": lambda m, n, b: model_of(m)["family"].update(kappa=10**30) or b,
    "names along an axis without sums": lambda m, n, b: (
        model_of(m)["stats"]["labels"]["items"].append(
            ["feature", {"@": "Axis", "names": {"@": "range", "size": 3}, "declared": 3}]
        )
        or b
    ),
    "an unknown structure": lambda m, n, b: model_of(m)["family"].update(structure="round") or b,
    "classes that are not names": lambda m, n, b: (
        model_of(m)["stats"]["labels"]["items"][0][1].update(
            names={"@": "tuple", "items": [{"@": "range", "size": i} for i in range(3)]}
        )
        or b
    ),
    "an axis without names": lambda m, n, b: model_of(m)["stats"]["family"]["labels"]["items"].pop() and b,
    "the number of rows is a dict": lambda m, n, b: m.update(rows={}) or b,
}


def dict_item(node, key, value):
    """Change an entry of a dict."""
    for item in node["items"]:
        if item[0] == key:
            item[1] = value


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_forged_classifier_is_refused(name, path):
    clf, X = fitted("full")
    clf.save(path)
    forged(path)
    np.testing.assert_array_equal(load(path).predict_proba(X), clf.predict_proba(X))
    forged(path, CLASSIFIERS[name])
    with pytest.raises(ModelFileError):
        load(path)


LEDGERS = {
    "an entry of no level": ("level", lambda level: np.full_like(level, -(2**31))),
    "a row that was learnt −1 times": ("count", lambda count: np.r_[-1, count[1:]]),
    "a row that was never learnt": ("count", lambda count: np.r_[0, count[1:]]),
    "so many rows that their number overflows": ("count", lambda count: np.full_like(count, 2**62)),
    "rows in another order": ("rows", lambda rows: rows[::-1].copy()),
    "rows that grew": ("since", lambda since: since * 2),
    "a decay that is no number": ("since", lambda since: since * np.nan),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_that_contradicts_itself_is_refused(name, path):
    field, change = LEDGERS[name]
    clf = GenerativeClassifier(Multinomial(), ledger=True).fit(COUNTS, y)
    clf.save(path)
    held = getattr(clf.ledger_, field)

    def swap(model, names, body):
        begin, end = names[f"fitted.model_.ledger.{field}"]["data_offsets"]
        assert body[begin:end] == held.tobytes()
        return body[:begin] + change(held).astype(held.dtype).tobytes() + body[end:]

    forged(path, swap)
    with pytest.raises(ModelFileError, match="ledger"):
        load(path)


USES = {
    "predict": lambda clf, X: clf.predict(X),
    "explain": lambda clf, X: clf.explain(X),
    "leave_one_out": lambda clf, X: clf.leave_one_out(X, y),
    "learn": lambda clf, X: clf.learn(X, y),
    "unlearn": lambda clf, X: clf.unlearn(X, y),
    "model_": lambda clf, X: clf.model_,  # what inspect reads
}


@pytest.mark.parametrize("use", USES)
def test_a_family_that_its_sums_contradict_is_refused_at_every_use(use, path):
    clf, X = fitted("multinomial")
    clf.save(path)

    def swap(model, names, body):
        model_of(model)["family"] = model_of(model)["asked"] = {"@": "Poisson", "shape": 1.0, "rate": 1.0}
        return body

    forged(path, swap)
    with pytest.raises(ModelFileError, match="do not belong together"):
        USES[use](load(path), X)


def labels_of(content):
    """The JSON of the axes of the sums."""
    return [axis for _, axis in model_of(content)["stats"]["family"]["inner"]["labels"]["items"]]


CONTRADICTIONS = {
    "transforms of no columns": lambda m, n, b: model_of(m)["family"].update(by={"@": "tuple", "items": []}) or b,
    "a class that the whole does not have": lambda m, n, b: labels_of(m)[0]["names"]["items"].reverse() or b,
    "classes that have no order": lambda m, n, b: labels_of(m)[0]["names"]["items"].__setitem__(0, 1.5) or b,
    "columns that are not declared": lambda m, n, b: labels_of(m)[1].update(declared=0) or b,
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_sums_that_no_row_can_be_added_to_are_refused_when_loaded(name, path):
    GenerativeClassifier(Transformed("yeo-johnson")).fit(FAMILIES["diagonal"][1], y).save(path)
    forged(path, CONTRADICTIONS[name])
    with pytest.raises(ModelFileError, match=r"do not belong together|classes of the whole|have an order|declared"):
        load(path)


def test_far_rows_have_classes_of_the_sums(path):
    X = np.r_[FAMILIES["diagonal"][1], [[1e12] * FAMILIES["diagonal"][1].shape[1]]]
    GenerativeClassifier(Gaussian("diagonal")).fit(X, [*y, y[0]]).save(path)

    def rename(content, names, body):
        labels = model_of(content)["stats"]["family"]["far"]["labels"]["items"][0][1]
        labels["names"]["items"][0] = "another"
        return body

    forged(path, rename)
    with pytest.raises(ModelFileError, match="classes of the whole"):
        load(path)


def test_combinations_of_categories_have_one_category_of_each_feature(path):
    rows = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"]], dtype=object)
    GenerativeClassifier(Categorical(joint=True)).fit(rows, ["s", "t", "s", "t"]).save(path)

    def shorten(content, names, body):
        model_of(content)["stats"]["family"]["labels"]["items"][1][1]["names"]["items"][0]["items"] = []
        return body

    forged(path, shorten)
    with pytest.raises(ModelFileError, match="combinations of categories"):
        load(path)


def test_combinations_of_categories_have_the_columns_of_the_model(path):
    rows = np.array([[0, 1], [1, 0], [0, 0], [1, 1]])
    GenerativeClassifier(Categorical(joint=True)).fit(rows, ["s", "t", "s", "t"]).save(path)

    def widen(content, names, body):
        model_of(content)["reader"]["columns"]["size"] = 2**20
        return body

    forged(path, widen)
    with pytest.raises(ModelFileError, match=r"combinations of 1048576 columns|the number of columns"):
        load(path)


def test_a_joint_table_of_too_many_categories_is_refused_before_they_are_listed():
    family = Categorical(joint=True, categories=[["a", "b"], 2**40])
    with pytest.raises(NotAvailableError, match="1,099,511,627,776"):
        GenerativeClassifier(family).fit(np.array([["a", 0], ["b", 1]], dtype=object), ["x", "y"]).predict([["a", 0]])


def test_a_discriminant_analysis_without_rows_is_refused(path):
    model = LinearDiscriminantAnalysis().fit(FAMILIES["diagonal"][1], y)
    model._moments = (np.zeros_like(model._moments[0]), *model._moments[1:])
    with pytest.raises(ModelFileError, match="not all of 0"):  # the check of loading runs before saving, too
        save(model, path)
    model = LinearDiscriminantAnalysis().fit(FAMILIES["diagonal"][1], y)
    model._moments = (*model._moments[:2], -model._moments[2])
    with pytest.raises(ModelFileError, match="sums of squares"):
        save(model, path)


def test_components_of_a_mixture_have_the_names_of_their_sums(path):
    clf = GenerativeClassifier(Mixture(Gaussian(), 2)).fit(FAMILIES["diagonal"][1], y)
    clf.save(path)

    def rename(content, names, body):
        labels = model_of(content)["stats"]["family"]["mixing"]["labels"]["items"][0][1]
        labels["names"]["items"][0]["items"][0] = "another"
        return body

    forged(path, rename)
    with pytest.raises(ModelFileError, match="classes of the whole"):
        load(path)


ESTIMATORS = {"hmm-1": {"n_jobs": 0}, "plsa-1": {"min_df": -1, "threads": 0}, "clusters-1": {"tol": -1.0}} | {
    "hmm-classifier-1": {"n_states": 0},
    "pca-1": {"n_components": 0},
    "semi-supervised-1": {"unlabelled_weight": -1.0, "classifier": "naive"},
    "topics-1": {"stem": "klingon", "batch": 0},
}


@pytest.mark.parametrize("golden", ESTIMATORS)
def test_parameters_that_fit_refuses_are_refused_in_files(golden, path):
    """Also when the model is saved: what `save` writes, `load` reads."""
    for name, value in ESTIMATORS[golden].items():
        model = load(GOLDEN[0].with_name(f"{golden}.deciban"))
        save(model, path)

        def change(content, names, body, name=name, value=value):
            record = content["model"] if "parameters" in content["model"] else content["model"]["estimator"]
            dict_item(record["parameters"], name, value)
            return body

        forged(path, change)
        with pytest.raises(ModelFileError, match=r"must be|no stemmer"):
            load(path)
        with pytest.raises(DecibanError, match=r"must be|no stemmer"):
            save(model.set_params(**{name: value}), path)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ({"@": "tuple", "items": []}, "a column in each block"),
        ({"@": "scalar", "dtype": "U8", "value": 0}, "its blocks"),
    ],
)
def test_blocks_of_a_product_that_have_no_sums_are_refused(key, why, path):
    save(load(GOLDEN[0].with_name("fitted-product-1.deciban")), path)

    def change(content, names, body):
        content["model"]["family"]["families"]["items"][1][0] = key
        return body

    forged(path, change)
    with pytest.raises(ModelFileError, match=why):
        load(path)


def test_a_long_range_within_a_sequence_is_refused(path):
    """It would be made an array of 2⁴⁰ numbers before anything is known of it."""
    clf, _ = fitted("multinomial")
    clf.save(path)

    def change(content, names, body):
        families = dict(content["model"]["parameters"]["items"])["families"]
        families["pseudo_count"] = {"@": "tuple", "items": [1.0, {"@": "range", "size": 2**40}]}
        return body

    forged(path, change)
    with pytest.raises(ModelFileError, match="range of more than"):
        load(path)


def test_attributes_of_another_type_are_refused(path):
    save(Fisher().fit(FAMILIES["diagonal"][1], y), path)

    def swap(model, names, body):
        held = dict(model["model"]["fitted"]["items"])["projection_"]
        inner = dict(held)
        held.clear()
        held.update({"@": "dict", "items": [["projection", inner]]})
        return body

    forged(path, swap)
    with pytest.raises(ModelFileError, match="projection_"):
        load(path)


def test_a_product_of_a_former_version_goes_on_learning():
    """Its sums had joined names of columns as keys."""
    golden = next(each for each in GOLDEN if each.stem == "fitted-product-1")
    asked = json.loads(golden.with_suffix(".json").read_text())
    model, X = load(golden), given(asked)
    np.testing.assert_allclose(model.learn(X).unlearn(X).log_density(X), model.log_density(X), rtol=1e-12)


# -- large files -----------------------------------------------------------------------------------------------------
def spoilt(path, at=-9):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def test_sums_of_a_large_file_are_checked_when_they_are_first_used(path, monkeypatch):
    clf, X = fitted("multinomial")
    clf.save(path)
    monkeypatch.setattr(models, "SMALL", 0)
    np.testing.assert_array_equal(load(path).predict_proba(X), clf.predict_proba(X))
    pickle.loads(pickle.dumps(load(path))).predict(X)
    spoilt(path)
    with pytest.raises(ModelFileError, match="digest"):
        load(path, verify=True)
    for act in (lambda m: m.predict(X), lambda m: m.save(path), pickle.dumps, lambda m: (m + clf).predict(X)):
        with pytest.raises(ModelFileError, match="digest"):
            act(load(path))
    load(path, verify=False).predict(X)


def test_a_large_released_model_is_checked_on_demand(path, monkeypatch):
    clf, X = fitted("multinomial")
    release(clf).save(path)
    monkeypatch.setattr(models, "SMALL", 0)
    spoilt(path)
    load(path).predict(X)
    with pytest.raises(ModelFileError, match="digest"):
        load(path, verify=True)


def test_a_large_fitted_family_is_checked_at_once(path, monkeypatch):
    save(Multinomial().fit(COUNTS), path)
    monkeypatch.setattr(models, "SMALL", 0)
    spoilt(path)
    with pytest.raises(ModelFileError, match="digest"):
        load(path)


@pytest.mark.parametrize("mapped", [False, True])
def test_arrays_are_mapped_only_if_asked(path, mapped):
    save(release(Multinomial().fit(np.ones((1, 300_000)))), path)
    model = load(path, verify=False, mmap=mapped)
    density = model.family.density
    assert not density.log_p.flags.writeable
    assert (str(path) in Path("/proc/self/maps").read_text()) == mapped


def test_a_model_that_was_read_does_not_follow_its_file(path):
    """With a map, a file copied over this one would change the answers, and a truncation would end the process."""
    clf, X = fitted("multinomial")
    other, _ = fitted("poisson")
    release(clf).save(path)
    before, loaded = clf.predict_proba(X), load(path)
    release(other).save(path.with_name("other"))
    with open(path, "r+b") as file:
        file.write(path.with_name("other").read_bytes())
    np.testing.assert_array_equal(loaded.predict_proba(X), before)
    os.truncate(path, 10)
    np.testing.assert_array_equal(loaded.predict_proba(X), before)


def test_a_pipe_is_refused_and_not_waited_for(path):
    os.mkfifo(path)
    with pytest.raises(ModelFileError, match="pipe"):
        load(path)


# -- patterns ----------------------------------------------------------------------------------------------------------
def test_a_pattern_that_may_take_exponential_time_is_refused_unless_trusted(path):
    texts = ["alpha beta", "beta gamma", "gamma", "alpha"] * 3
    save(GenerativeClassifier(Text(pattern=r"((?:a+)+)\b")).fit(texts, ["x", "y"] * 6), path)
    with pytest.raises(ModelFileError, match="trust_pattern=True"):
        load(path)
    load(path, trust_pattern=True).predict(texts)
    clf = GenerativeClassifier(Text(pattern=r"[a-z]+(?:-[a-z]+)*")).fit(texts, ["x", "y"] * 6)
    save(clf, path)
    np.testing.assert_array_equal(load(path).predict_proba(texts), clf.predict_proba(texts))


def test_sums_that_do_not_belong_to_the_family_are_named(path):
    fitted("diagonal")[0].save(path)

    def swap(model, names, body):
        value = dict(model["model"]["fitted"]["items"])["model_"]
        value["family"].update({"@": "Poisson", "shape": 1.0, "rate": 1.0})
        for name in set(value["family"]) - {"@", "shape", "rate"}:
            if isinstance(part := value["family"].pop(name), dict):
                model["model"]["fitted"]["items"].append([name, part])  # every array is used
        return body

    forged(path, swap)
    with pytest.raises(ModelFileError, match="do not belong together"):
        load(path).predict(np.round(np.abs(FAMILIES["diagonal"][1])))


def test_the_document_tells_the_bytes():
    document = (Path(__file__).parents[2] / "docs" / "reference" / "file-format.md").read_text()
    data = GOLDEN[0].read_bytes()
    length = int.from_bytes(data[:8], "little")
    places = {int(at): size for at, size in re.findall(r"^\| (\d+) \| (\d+|…) \|", document, re.MULTILINE)}
    assert list(places) == [0, 8, 49, 113, 123, 187]
    assert data[8:49] == b'{"__metadata__":{"deciban":"1","header":"'
    blank = data[8:49] + b"0" * 64 + data[113 : 8 + length]
    assert data[49:113].decode() == blake2b(blank, digest_size=32).hexdigest()
    assert data[113:123] == b'","data":"'
    assert data[123:187].decode() == blake2b(data[8 + length :], digest_size=32).hexdigest()
    assert data[187:].startswith(b'","model":"')
    assert (8 + length) % 64 == 0
    for kind in (*PLAIN, *container.DTYPES, *KEYS):
        assert re.search(rf"\b{kind}\b", document), kind


def test_features_have_the_names_of_the_columns(path):
    X = FAMILIES["diagonal"][1]
    GenerativeClassifier(Gaussian("diagonal")).fit(X, y).save(path)

    def rename(content, names, body):
        axis = next(axis for name, axis in model_of(content)["stats"]["family"]["labels"]["items"] if name == "feature")
        axis["names"] = {"@": "tuple", "items": [f"column {at}" for at in range(X.shape[1])]}
        axis["declared"] = 0
        return body

    forged(path, rename)
    with pytest.raises(ModelFileError, match="the names of the columns"):
        load(path)


@with_tested_sklearn
def test_parameters_that_contradict_each_other_are_refused(path):
    for analysis in (LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis()):
        analysis.fit(FAMILIES["diagonal"][1], y).set_params(shrinkage=0.5)
        with pytest.raises(HyperparameterError, match="solver='svd'"):
            models.save(analysis, path)


def test_a_classifier_of_sequences_has_one_weight_for_each_class(path):
    sequences = [["a", "b"], ["b", "a", "a"], ["c", "c"], ["c", "b"]]
    models.save(HMMClassifier(Categorical(), 1, random_state=0).fit(sequences, ["s", "s", "t", "t"]), path)

    def turn(content, names, body):
        names["weights"]["shape"] = [2, 1]
        return body

    forged(path, turn)
    with pytest.raises(ModelFileError, match="as many as there are classes"):
        load(path)


def test_keys_of_a_dict_are_plain_numbers(path):
    rows = np.random.default_rng(0).normal(size=(12, 3))
    families = {np.int64(0): Gaussian("diagonal"), (1, 2): Gaussian("full")}
    models.save(GenerativeClassifier(families).fit(rows, y[:12]), path)
    clf = load(path)
    assert [type(key) for key in clf.families] == [int, tuple]
    assert "(1, 2)" in repr(clf)


def test_topics_have_all_attributes_of_a_fit(path):
    models.save(TopicModel(2, random_state=0).fit(["red wine", "white wine", "old cheese", "new cheese"]), path)

    def rename(content, names, body):
        fitted = content["model"]["estimator"]["fitted"]["items"]
        next(item for item in fitted if item[0] == "texts_")[0] = "TEXTS_"
        return body

    forged(path, rename)
    with pytest.raises(ModelFileError, match="its attribute 'texts_'"):
        load(path)


@pytest.mark.parametrize("given", [5, 2**31, 4.0, True])
def test_topics_have_as_many_columns_as_words(path, given):
    models.save(TopicModel(2, random_state=0).fit(np.eye(4, dtype=int) + 1), path)

    def resize(content, names, body):
        fitted = content["model"]["estimator"]["fitted"]["items"]
        next(item for item in fitted if item[0] == "n_features_in_")[1] = given
        return body

    forged(path, resize)
    with pytest.raises(ModelFileError, match="n_features_in_"):
        load(path)


def test_levels_of_interactions_are_whole_numbers(path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.integers(0, 3, (200, 2)), columns=["a", "b"]).astype(str)
    clf = GenerativeClassifier(interactions=[("a", "b")]).fit(rows, (rows["a"] == rows["b"]).to_numpy())
    models.save(release(clf), path)

    def retype(content, names, body):
        next(entry for name, entry in names.items() if name.endswith(".levels"))["dtype"] = "U64"
        return body

    forged(path, retype)
    with pytest.raises(ModelFileError, match=r"InteractionDensity\.levels needs integers"):
        load(path)


def test_a_density_of_blocks_has_some(path):
    rows = np.random.default_rng(0).normal(size=(24, 2))
    blocks = Product({0: Gaussian("diagonal"), 1: Gaussian("diagonal")})
    models.save(release(GenerativeClassifier(Mixture(blocks, 2), calibrate=None).fit(rows, np.arange(24) % 2)), path)

    def empty(content, names, body):
        density = model_of(content)["family"]["density"]["each"]["items"][0]["components"]
        assert density["@"] == "ProductDensity"
        density["blocks"]["items"] = []
        return body

    forged(path, empty)
    with pytest.raises(ModelFileError):
        load(path)
