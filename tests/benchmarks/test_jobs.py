"""Every job that makes its own data runs on a small share of it; results can be kept, compared and shown."""

import importlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

needs_data = pytest.mark.skipif("DECIBAN_DATA" not in os.environ, reason="DECIBAN_DATA is not set")
FOLDER = Path(__file__).parents[2] / "benchmarks"
JOBS = {  # the module and the share of the rows
    "categorical": ("counts", 0.002),
    "multinomial": ("counts", 0.002),
    "diagonal": ("dense", 0.002),
    "full": ("dense", 0.002),
    "tied": ("dense", 0.002),
    "leave-one-out": ("leave_one_out", 0.2),
    "hmm": ("hmm", 0.02),
    "dropins": ("dropins", 0.01),
    "dropins-other": ("dropins", 0.001),
    "dropins-few": ("dropins", 0.001),
    "clock-gaussian": ("clock", 0.002),
    "clock-tied": ("clock", 0.002),
    "clock-mixtures": ("clock", 0.002),
    "clock-hidden": ("clock", 0.01),
    "clock-counts": ("clock", 0.002),
    "clock-left-out": ("clock", 0.002),
    "clock-tables-default": ("clock", 0.002),
}
WITH_DATA = {  # jobs that need DECIBAN_DATA
    "text": ("text", 0.002),
    "clock-text": ("clock", 0.002),
    "clock-text-scores": ("clock", 0.002),
}
# jobs that start processes or clusters, stream gigabytes, or repeat whole fits whatever the share: minutes each
LONG = {
    *("cli", "startup", "text-one", "one-row", "clock-one-row", "clock-first", "clock-small", "clock-text-default"),
    *("text-memory", "clock-memory", "growth", "mixtures", "mnist", "topics", "topics-gensim", "topic-evidence"),
    *(
        "engines",
        "engines-scale",
        "engines-words",
        "engines-flat",
        "engines-sql",
        "mllib-bayes",
        "mllib-mixture",
        "mllib-topics",
        "topic-tuning",
        "tables",
    ),
    *("text-quality", "text-rivals", "rivals", "few-rows", "noise-figures", "set-figures", "prediction-sets", "trust"),
    "topic-tuning",
}


@pytest.fixture
def benchmarks(monkeypatch):
    """Imports a module of the folder; none of them stays imported, and folders of tests of the same name come back."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in {file.stem for file in FOLDER.glob("*.py")} & set(sys.modules):
        monkeypatch.delitem(sys.modules, name)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_every_job_has_a_small_run_or_a_reason(benchmarks):
    benchmarks("run")
    known = {*JOBS, *WITH_DATA, *LONG}
    assert known == set(benchmarks("harness").BENCHMARKS)


@pytest.mark.filterwarnings("ignore::deciban.errors.EmptyComponentWarning")  # there are few rows
@pytest.mark.parametrize("job", [*JOBS, *(pytest.param(name, marks=needs_data) for name in WITH_DATA)])
def test_a_job_runs_and_both_sides_agree(benchmarks, job):
    module, share = {**JOBS, **WITH_DATA}[job]
    benchmarks(module)
    harness, record = benchmarks("harness"), benchmarks("record")
    rows = [said for said in harness.BENCHMARKS[job](share) if isinstance(said, harness.Row)]
    assert rows
    for row in rows:
        result = record.Result.of(job, row)
        assert result.ours > 0
        if "our interface" not in row.job:  # it has no `var_smoothing`
            assert result.difference is None or result.difference < 1e-6


def results(record):
    plain = record.Result("full", "fit", "QDA", 0.5, 2.0, 4.0, 3.9, 4.1, 0.3, 1.5, "≥ 3", "yes", 1e-9)
    slow = replace(plain, job="scores", ours=4.0, ratio=0.5, reach="≥ 2", met="NO", our_elapsed=None)
    return [plain, slow, replace(plain, job="start", peer="", theirs=None, ratio=None, their_elapsed=None)]


def test_results_are_kept_with_machine_versions_and_commit(benchmarks, tmp_path):
    record = benchmarks("record")
    given = results(record)
    record.write(tmp_path / "a" / "run.json", given, ["a remark"], 1.0, record.machine())
    run, back = record.read(tmp_path / "a" / "run.json")
    assert back == given
    assert run["machine"]["packages"]["scikit-learn"]
    assert json.loads((tmp_path / "a" / "run.json").read_text())["remarks"] == ["a remark"]


def test_groups_of_one_commit_and_share_are_kept_together(benchmarks, tmp_path):
    record = benchmarks("record")
    path, first = tmp_path / "run.json", results(record)
    record.write(path, first, ["full: a remark"], 1.0, record.machine())
    second = [replace(first[0], benchmark="clock-text")]
    record.write(path, second, ["clock-text: another"], 1.0, record.machine())
    run, back = record.read(path)
    assert (back, run["remarks"]) == ([*first, *second], ["full: a remark", "clock-text: another"])
    again = [replace(first[0], ours=0.25)]
    record.write(path, again, ["full: anew"], 1.0, record.machine())
    run, back = record.read(path)
    assert (back, run["remarks"]) == ([*second, *again], ["clock-text: another", "full: anew"])
    record.write(path, first, [], 0.5, record.machine())  # another share: not to be mixed
    assert record.read(path)[1] == first


def test_the_gain_of_threads_is_a_row_of_its_own(benchmarks):
    clock, jobs = benchmarks("clock"), benchmarks("clock_jobs")
    calls = {"theirs": 0, "ours": 0}

    def act(side):
        calls[side] += 1

    job = jobs.Job("job", "peer", lambda: act("theirs"), lambda: act("ours"), 2.0, peer_repeats=2, gain=1.6, calls=3)
    beside, gain, remark = clock.measure(job, 2)
    assert calls == {"theirs": 6, "ours": 31}  # once to compile, three calls in five turns, with one thread and two
    assert (beside.by_clock, str(beside.reach), len(beside.ratios)) == (True, "≥ 2", 5)
    assert (gain.peer, str(gain.reach)) == ("ours, one thread", "≥ 1.6")
    assert "simulated gain" in remark
    assert len(list(clock.measure(job, 1))) == 2


def test_a_job_that_became_slower_is_told_whatever_the_machine(benchmarks, tmp_path, capsys, monkeypatch):
    record, compare = benchmarks("record"), benchmarks("compare")
    old = results(record)
    twice_as_slow_machine = [replace(one, ours=2 * one.ours, theirs=one.theirs and 2 * one.theirs) for one in old[:2]]
    new = [replace(twice_as_slow_machine[0], ours=2.0), twice_as_slow_machine[1], replace(old[2], job="other")]
    both, gone, come = compare.changes(old, new)
    assert [round(change.factor, 6) for change in both] == [0.5, 1.0]
    assert ([one.job for one in gone], [one.job for one in come]) == (["start"], ["other"])
    for name, given in (("old", old), ("new", new)):
        record.write(tmp_path / f"{name}.json", given, [], 1.0, record.machine())
    monkeypatch.setattr(sys, "argv", ["compare.py", str(tmp_path / "old.json"), str(tmp_path / "new.json")])
    with pytest.raises(SystemExit) as ended:
        compare.main()
    assert ended.value.code
    assert "1 of 2 jobs lost more than 10%" in capsys.readouterr().out


def test_the_page_names_jobs_that_are_slower_and_bounds_that_are_missed(benchmarks, tmp_path, monkeypatch):
    record, page = benchmarks("record"), benchmarks("page")
    record.write(tmp_path / "run.json", results(record), [], 1.0, record.machine())
    monkeypatch.setattr(sys, "argv", ["page.py", str(tmp_path / "run.json"), "-o", str(tmp_path / "page.md")])
    page.main()
    text = (tmp_path / "page.md").read_text()
    assert (
        "1 of 2 jobs are at least as fast as the peer. Slower: scores (0.5 of QDA). Missed bounds: scores, ≥ 2." in text
    )
    assert text.count("| fit | QDA | 2 | 0.5 | 4 | 5 | ≥ 3 | 1e-09 |") == 1
    assert (tmp_path / "page.svg").read_text().startswith("<?xml")
