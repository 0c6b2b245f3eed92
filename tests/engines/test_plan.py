"""The plan of a fit over fragments: equal to the fit of one machine, also if tasks run twice or in another order."""

import weakref
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deciban import Gaussian, GenerativeClassifier, Mixture, Text
from deciban.engines import plan, words
from deciban.engines.plan import Serial, Tree, over_parts, tree
from deciban.engines.tasks import Adding, Choices, FilePart, Files, Partial, Summing, Task, parts_of
from deciban.errors import EngineError, InputError, NotAvailableError
from deciban.latent.gaussian_missing import GaussianWithGaps
from deciban.read.batches import chosen_rows, draws
from deciban.read.files import open_source
from engine_rows import ROWS, assert_close_sums, assert_equal_models, columns, documents, groups, planned, write

FAMILIES = {"size": "gaussian", "colour": "categorical", "calls": "poisson"}


class Shuffled(Serial):
    """Runs tasks in another order, each of them twice, and uses the second result."""

    def total(self, work, items, addition):
        found = {}
        for at in np.random.default_rng(5).permutation(np.repeat(np.arange(len(items)), 2)):
            found[at] = work(*items[at])
        order = {task.place: found[at] for at, (_, task) in enumerate(items)}
        return super().total(lambda data, task: order[task.place], items, addition)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write(tmp_path_factory.mktemp("table"), columns(ROWS), 3)


@pytest.fixture(scope="module")
def one_machine(table):
    return GenerativeClassifier().fit(table, "label")


def test_fragments_give_the_model_of_one_machine(table, one_machine):
    found = planned(GenerativeClassifier(), table)
    assert_equal_models(one_machine.model_, found.model)
    rows = columns(500, 9).drop(["label"])
    many = GenerativeClassifier().use(found)
    many._note_names(found.model.reader.given)
    np.testing.assert_allclose(many.predict_proba(rows), one_machine.predict_proba(rows), atol=1e-12)
    assert found.model.calibration.fitted_on == one_machine.calibration_.fitted_on == ROWS


def test_tasks_that_run_twice_and_in_another_order_change_no_bit(table):
    one, two = (planned(GenerativeClassifier(), table, engine) for engine in (Serial(), Shuffled()))
    assert one.model.stats.same(two.model.stats)
    assert one.model.calibration.agrees(two.model.calibration)


def test_the_tree_adds_in_pairs_what_it_adds_by_eight_to_the_bit():
    def add(values):  # neighbours first, as sums of fragments
        while len(values) > 1:
            values = [sum(values[at : at + 2]) for at in range(0, len(values), 2)]
        return values[0]

    numbers = np.random.default_rng(0).lognormal(0, 20, 700).tolist()
    for n in (*range(1, 150), 511, 512, 513, 700):
        assert tree(numbers[:n], add, 2) == tree(iter(numbers[:n]), add, 8)


def test_the_tree_holds_few_sums_at_a_time():
    growing, most = Tree(sum, 2), 0
    for number in range(1000):
        growing.put(number)
        most = max(most, sum(map(len, growing.levels)))
    assert growing.total() == sum(range(1000))
    assert most <= 10


def test_a_ledger_has_the_rows_of_all_fragments(table):
    clf = GenerativeClassifier({"calls": "poisson"}, ledger=True, calibrate=None).fit(table, "label")
    source = open_source(table)
    request = replace(clf._request(None), key=clf._key())
    found, _ = plan.fit(request, Files(source, "label", parts_of(source, 1)), Serial())
    assert np.array_equal(found.model.ledger.rows, clf.ledger_.rows)
    assert np.array_equal(found.model.ledger.count, clf.ledger_.count)


@pytest.mark.parametrize(("transform", "words_of_part"), [("log", 2**18), ("log+unit", 300)])
def test_texts_in_fragments_give_the_words_and_counts_of_one_machine(tmp_path, monkeypatch, transform, words_of_part):
    monkeypatch.setattr(words, "WORDS_OF_PART", words_of_part)  # 5,000 words in 1 part, or in 17
    pattern = write(tmp_path, documents(ROWS), 2)
    family = {"text": Text(transform=transform, pseudo_count=1.0)}
    one = GenerativeClassifier(family).fit(pattern, "label")
    found = planned(GenerativeClassifier(family), pattern)
    assert_equal_models(one.model_, found.model)
    assert found.model.calibration.agrees(one.calibration_)


class Recording(Serial):
    """Keeps the tasks of each sum."""

    def __init__(self):
        self.totals = []

    def total(self, work, items, addition):
        self.totals.append([task for _, task in items])
        return super().total(work, items, addition)


@pytest.mark.parametrize("ledger", [False, True])
def test_tasks_sum_the_first_rows_where_no_choice_depends_on_them(tmp_path, ledger):
    pattern = write(tmp_path, documents(ROWS), 3)
    family = {"text": Text(transform="counts", pseudo_count=1.0)}
    clf, engine = GenerativeClassifier(family, ledger=ledger), Recording()
    one = clf.fit(pattern, "label")
    source = open_source(pattern)
    request = replace(clf._request(None), key=clf._key() if ledger else None)
    found, _ = plan.fit(request, Files(source, "label", parts_of(source)), engine)
    assert_equal_models(one.model_, found.model)
    assert found.model.calibration.agrees(one.calibration_)
    first, later = engine.totals
    assert [(task.skip, task.stop) for task in first] == [(0, task.skip) for task in later if task.skip]
    assert first[-1].stop < ROWS // 3  # the last of the first rows is inside of a fragment
    if ledger:
        assert np.array_equal(found.model.ledger.rows, one.ledger_.rows)
        assert np.array_equal(found.model.ledger.count, one.ledger_.count)


@pytest.mark.parametrize(
    "family",
    [Text(transform="counts"), Text(transform="counts", pseudo_count=1.0, min_df=2), Text(pseudo_count=1.0)],
)
def test_this_process_sums_the_first_rows_where_a_choice_depends_on_them(tmp_path, family):
    pattern, engine = write(tmp_path, documents(ROWS), 3), Recording()
    one = GenerativeClassifier({"text": family}, calibrate=None).fit(pattern, "label")
    found = planned(GenerativeClassifier({"text": family}, calibrate=None), pattern, engine)
    assert_equal_models(one.model_, found.model)
    [tasks] = engine.totals
    assert all(task.stop is None for task in tasks)


def test_declared_classes_keep_their_order_where_tasks_could_sum_the_first_rows(tmp_path):
    pattern, engine = write(tmp_path, documents(ROWS), 3), Recording()
    clf = GenerativeClassifier({"text": Text(transform="counts", pseudo_count=1.0)}, calibrate=None)
    source = open_source(pattern)
    files = Files(source, "label", parts_of(source))
    found, _ = plan.fit(clf._request(("b", "a", "never")), files, engine)
    assert found.model.classes == ("b", "a", "never")


class OneAtATime(Serial):
    """Checks that a range of words is freed before the next one is fetched."""

    def total(self, work, items, addition):
        ranges, earlier = super().total(work, items, addition), []
        yield next(ranges)  # its classes, documents and tokens are those of the whole
        for piece in ranges:
            assert not any(other() for other in earlier)
            earlier.append(weakref.ref(piece))
            yield piece
            del piece
        assert len(earlier) == addition.parts - 1 > 1


def test_ranges_of_words_are_fetched_one_at_a_time_also_with_a_class_in_one_fragment_only(tmp_path, monkeypatch):
    monkeypatch.setattr(words, "WORDS_OF_PART", 300)
    pattern = write(tmp_path, documents(ROWS), 2)
    last = documents(50, 4).set_column(1, "label", pa.array(["new"] * 50))
    pq.write_table(last.slice(0, 0), tmp_path / "002.parquet")
    pq.write_table(last, tmp_path / "003.parquet")
    family = {"text": Text(transform="counts", pseudo_count=1.0)}
    one = GenerativeClassifier(family, calibrate=None).fit(pattern, "label")
    found = planned(GenerativeClassifier(family, calibrate=None), pattern, OneAtATime())
    assert found.model.classes == ("a", "b", "new")
    assert_equal_models(one.model_, found.model)


def _sums_of_words(drawn):
    """The sums of documents of 100 words, given by their numbers."""
    texts = [" ".join(f"w{word}" for word in row) for row in drawn.reshape(-1, 100).tolist()]
    labels = np.array(["a", "b"])[np.arange(len(texts)) % 2]
    family = {"text": Text(transform="counts", pseudo_count=1.0)}
    return GenerativeClassifier(family, calibrate=None).fit(pa.table({"text": texts, "label": labels}), "label").stats_


def test_the_number_of_words_is_predicted_by_those_that_occur_once():
    rng = np.random.default_rng(0)
    drawn = rng.zipf(2.0, 160_000)  # the number of words grows as the square root of the number of tokens
    [few], [many] = (words.text_blocks(_sums_of_words(some)).values() for some in (drawn[:20_000], drawn))
    assert words.predicted_words(few, 8.0) == pytest.approx(many.counts.shape[1], rel=0.2)
    [closed] = words.text_blocks(_sums_of_words(rng.integers(0, 500, 20_000))).values()
    assert words.predicted_words(closed, 100.0) == 500
    fresh = _sums_of_words(np.arange(20_000))  # no word occurs twice
    assert words.parts_needed(fresh, 100.0) == np.ceil(20_000 * 100.0**words.GROWTH / words.WORDS_OF_PART)


def test_rows_of_csv_files_are_counted_as_they_are_read(tmp_path):
    table = columns(ROWS).to_pandas()
    table.iloc[:40_000].to_csv(tmp_path / "a.csv", index=False)
    table.iloc[40_000:].to_csv(tmp_path / "b.csv", index=False)
    with open(tmp_path / "b.csv", "a") as file:
        file.write("a lone cell\n1.5,red,many,low\n")
    source = open_source(f"{tmp_path}/*.csv", skip_bad=True)
    families = {"size": "gaussian", "calls": "poisson"}
    clf = GenerativeClassifier(families, calibrate="offsets")
    found, rows = plan.fit(clf._request(None), Files(source, "label", parts_of(source)), Serial())
    again = open_source(f"{tmp_path}/*.csv", skip_bad=True)
    clf.fit(again, "label")
    assert_equal_models(clf.model_, found.model)
    assert rows.X.skipped.rows == again.skipped.rows == 2


def test_the_first_rows_alone_are_a_whole_input(tmp_path):
    pattern = write(tmp_path, columns(3_000), 2, 500)
    one = GenerativeClassifier().fit(pattern, "label")
    assert planned(GenerativeClassifier(), pattern).model.stats.same(one.stats_)


def test_a_gap_behind_the_first_rows_separates_columns_that_vary_together(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    both = rng.normal(size=ROWS)
    code = rng.integers(0, 2, ROWS)
    one = both + rng.normal(size=ROWS) * 0.1 + code
    two = both + rng.normal(size=ROWS) * 0.1 - code
    two[-1] = np.nan
    rows = pa.table({"one": one, "two": pa.array(two, from_pandas=True), "label": np.array(["a", "b"])[code]})
    pattern = write(tmp_path, rows, 2)
    clf = GenerativeClassifier().fit(pattern, "label")
    fits, fit_once = [], plan._fit
    monkeypatch.setattr(plan, "_fit", lambda *args: fits.append(fit_once(*args)) or fits[-1])
    assert_equal_models(clf.model_, planned(GenerativeClassifier(), pattern).model)
    assert fits[0] is None
    assert len(fits) == 2


def test_an_empty_fragment_adds_nothing_and_a_class_may_be_in_one_fragment_only(tmp_path):
    table = columns(ROWS)
    pattern = write(tmp_path, table, 2)
    pq.write_table(table.slice(0, 0), tmp_path / "002.parquet")
    last = columns(50, 4).set_column(3, "label", pa.array(["new"] * 50))
    pq.write_table(last, tmp_path / "003.parquet")
    family = {"calls": "poisson"}
    one = GenerativeClassifier(family).fit(pattern, "label")
    found = planned(GenerativeClassifier(family), pattern)
    assert found.model.classes == ("high", "low", "new")
    assert_equal_models(one.model_, found.model)


# -- bad input ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop(["calls"]), "lacks 'calls'"),
        (lambda table: table.append_column("more", pa.array([1] * len(table))), "has also 'more'"),
        (lambda table: table.set_column(2, "calls", pa.array(["many"] * len(table))), "column 'calls'"),
        (lambda table: table.set_column(2, "calls", pa.array(["7"] * len(table))), "of type string here"),
    ],
)
def test_a_fragment_with_another_schema_is_named(tmp_path, change, said):
    pattern = write(tmp_path, columns(ROWS), 2)
    pq.write_table(change(columns(100, 1)), tmp_path / "002.parquet")
    with pytest.raises(InputError, match=r"002\.parquet") as found:
        planned(GenerativeClassifier({"calls": "poisson"}), pattern)
    assert said in str(found.value)
    with pytest.raises(InputError, match=r"002\.parquet"):
        GenerativeClassifier({"calls": "poisson"}).fit(pattern, "label")


def test_a_bad_value_is_named_by_its_file_and_row(tmp_path):
    table = columns(ROWS)
    pattern = write(tmp_path, table, 2)
    calls = np.array(table["calls"])[:5_000].copy()
    calls[4_321] = -3
    pq.write_table(table.slice(0, 5_000).set_column(2, "calls", pa.array(calls)), tmp_path / "002.parquet", 1_000)
    with pytest.raises(ValueError, match=r"002\.parquet, row 4322"):
        planned(GenerativeClassifier({"calls": "poisson"}), pattern)


def test_a_file_that_vanishes_is_named(tmp_path):
    pattern = write(tmp_path, columns(ROWS), 3)

    class Removing(Serial):
        def total(self, work, items, addition):
            (tmp_path / "002.parquet").unlink()
            return super().total(work, items, addition)

    clf = GenerativeClassifier({"calls": "poisson"})
    with pytest.raises(InputError, match=r"002\.parquet: the process that reads it, on .*, finds no such file"):
        planned(clf, pattern, Removing())
    assert not clf.__sklearn_is_fitted__()


def test_rows_behind_the_first_are_read_by_tasks_alone_and_the_first_by_none(tmp_path, monkeypatch):
    pattern, opened = write(tmp_path, columns(3 * ROWS), 12), []
    monkeypatch.setattr(FilePart, "source", lambda part, read=FilePart.source: opened.append(part.name) or read(part))
    clf = GenerativeClassifier(FAMILIES, calibrate="offsets")
    source = open_source(pattern)
    parts = parts_of(source, 2**30)
    found, rows = plan.fit(clf._request(None), Files(source, "label", parts), Serial())
    assert len(rows.X.starts) == 4  # files of 17,500 rows that this process opened for the first 65,536
    assert opened == [part.name for part in parts[3:]]
    assert_equal_models(clf.fit(pattern, "label").model_, found.model)


def test_processes_with_another_current_folder_find_the_files(tmp_path, monkeypatch):
    pattern = write(tmp_path, columns(ROWS), 3)
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    class Elsewhere(Serial):
        def total(self, work, items, addition):
            monkeypatch.chdir(elsewhere)
            return super().total(work, items, addition)

    clf = GenerativeClassifier({"calls": "poisson"}, calibrate=None)
    found = planned(clf, "*.parquet", Elsewhere())
    assert_equal_models(planned(clf, pattern).model, found.model)


def test_answers_over_parts_are_shown_by_a_bar(tmp_path, monkeypatch):
    pattern, shown = write(tmp_path, columns(ROWS), 3), []

    @contextmanager
    def bar(label, total):
        yield lambda count, message: shown.append((label, total, count))

    monkeypatch.setattr("deciban.engines.plan.progress_bar", bar)
    found = list(over_parts(lambda part, task: part.rows, open_source(pattern), Serial(), quiet=False))
    assert sum(found) == ROWS
    assert shown == [("fragments", 3, count) for count in (1, 2, 3)]


def test_a_worker_of_another_version_is_refused():
    choices = Choices(None, None, None, "label", (), version="0.0.1")
    with pytest.raises(EngineError, match=r"logs/7\.parquet: the worker has deciban .* 0\.0\.1"):
        Summing(choices)(None, Task(7, "logs/7.parquet"))


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.filterwarnings("ignore::deciban.errors.ConvergenceWarning")
def test_mixtures_of_a_classifier_go_on_with_em_over_all_fragments(tmp_path, alone):
    rows = groups(ROWS)
    pattern, mixture = write(tmp_path, rows, 3), Mixture(Gaussian("full"), 2, max_iter=8, random_state=0)
    families = mixture if alone else {("x", "y"): mixture, "colour": "categorical"}
    if alone:
        pattern = write(tmp_path, rows.drop(["colour"]), 3)
    one = GenerativeClassifier(families).fit(pattern, "label")
    two = planned(GenerativeClassifier(families), pattern)
    assert_close_sums(one.stats_, two.model.stats)
    shuffled = planned(GenerativeClassifier(families), pattern, Shuffled())
    assert two.model.stats.same(shuffled.model.stats)
    block = two.model.family if alone else two.model.family.families["x", "y"]
    found = two.model.stats.family if alone else two.model.stats.family.blocks["x", "y"]
    assert block.guess == found  # the estimate of all rows is frozen, not that of the first


def test_families_that_iterate_in_another_way_are_refused(table):
    with pytest.raises(NotAvailableError, match="GaussianWithGaps is fitted by several passes"):
        planned(GenerativeClassifier({("size", "calls"): GaussianWithGaps()}), table)


def test_a_pattern_without_files_says_so(tmp_path):
    with pytest.raises(InputError, match="no file matches"):
        open_source(f"{tmp_path}/*.parquet")


# -- pieces ------------------------------------------------------------------------------------------------------------
def test_the_shape_of_the_tree_depends_on_the_number_of_leaves_alone():
    shape = tree([str(at) for at in range(20)], "+".join)
    assert shape == "+".join(map(str, range(20)))
    groups = []
    tree(list(range(20)), lambda group: groups.append(len(group)) or sum(group))
    assert groups == [8, 8, 4, 3]


def test_partial_sums_are_added_as_neighbours():
    each = [Partial(rows=((at, at),)) for at in range(5)]
    assert Adding().add(each).rows == tuple((at, at) for at in range(5))


def test_rows_are_chosen_in_runs_as_at_once(monkeypatch):
    monkeypatch.setattr("deciban.read.batches.RUN", 1_000)
    n = 4_100
    whole = np.sort(np.argsort(draws(0, n))[:50])
    assert np.array_equal(chosen_rows(n, 50), whole)
