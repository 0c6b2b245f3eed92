"""Answers over HTTP are the library's answers."""

import csv
import io
import json

import numpy as np
import polars as pl
import pytest

import deciban

ROW = {"weight": 3.5, "legs": 4, "coat": "grey"}
FRAME = pl.DataFrame([ROW])
TEXT = "win a free lunch"


@pytest.fixture(scope="module")
def animals(models):
    return deciban.load(models / "animals.deciban")


@pytest.fixture(scope="module")
def spam(models):
    return deciban.load(models / "texts.deciban")


def test_predictions_are_the_librarys(table, animals):
    answer = table.post("/predict", {"row": ROW})["answers"][0]
    np.testing.assert_allclose(list(answer["probabilities"].values()), animals.predict_proba(FRAME)[0], rtol=1e-12)
    decided = animals.decide(FRAME)[0]
    assert answer["prediction"] == decided.label
    assert answer["evidence"] == pytest.approx(decided.llr * 10 / np.log(10), rel=1e-12)


def test_prior_cost_and_unsure_are_the_librarys_words(table, animals):
    prior, cost = {"dog": 0.9}, [["cat", "dog", 50]]
    asked = {"row": ROW, "prior": prior, "cost": cost, "unsure": 0.999}
    answer = table.post("/decide", asked)["answers"][0]
    decided = animals.decide(FRAME, prior=prior, cost={("cat", "dog"): 50}, unsure=0.999)[0]
    assert answer["label"] == decided.label
    assert answer["posterior"] == pytest.approx(decided.posterior, rel=1e-12)
    assert answer["expected_cost"] == pytest.approx(decided.expected_cost, rel=1e-9)
    predicted = table.post("/predict", {"row": ROW, "prior": prior})["answers"][0]["probabilities"]
    np.testing.assert_allclose(list(predicted.values()), animals.predict_proba(FRAME, prior=prior)[0], rtol=1e-12)


def test_parts_of_an_explanation_sum_to_the_answer(table, running, animals, spam):
    for service, row, clf, given in ((table, ROW, animals, FRAME), (running, TEXT, spam, [TEXT])):
        made = service.post("/explain", {"row": row})["answers"][0]
        total = sum(part["evidence"] for part in made["parts"])
        assert total == pytest.approx(made["evidence"], abs=1e-9)
        assert total + made["prior"] == pytest.approx(made["posterior"], abs=1e-9)
        known = clf.explain(given, made["over"], made["against"]).to_dict("decibans")
        assert made["posterior"] == pytest.approx(known["posterior"][0], abs=1e-9)


def test_evaluations_are_the_librarys(running, spam):
    rows, labels = ["free prize", "lunch today", "win lunch"], ["spam", "ham", "ham"]
    made = running.post("/evaluate", {"rows": rows, "labels": labels})
    known = spam.evaluate(rows, labels).to_dict()
    assert made["error_rate"] == known["error_rate"]
    assert made["log_loss"] == pytest.approx(known["log_loss"], rel=1e-9)
    assert made["confusion"] == known["confusion"]


def test_json_lines_and_csv_answer_as_json_does(table):
    rows = [ROW, {"weight": 20.0, "coat": "black"}]
    answers = table.post("/predict", {"rows": rows})["answers"]
    lines = "\n".join(map(json.dumps, rows))
    given = table.client.post("/predict", content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert [json.loads(line) for line in given.text.splitlines()] == answers
    body = "weight;legs;coat;id\n3.5;4;grey;x\n20.0;;black;y\n"
    headers = {"Content-Type": "text/csv", "Accept": "text/csv"}
    given = table.client.post("/predict", content=body, headers=headers)
    found = list(csv.DictReader(io.StringIO(given.text)))
    assert [line["prediction"] for line in found] == [one["prediction"] for one in answers]
    assert [line["id"] for line in found] == ["x", "y"]
    assert float(found[1]["P(dog)"]) == pytest.approx(answers[1]["probabilities"]["dog"], rel=1e-5)


def test_many_small_requests_are_answered_each_with_its_own(table):
    import concurrent.futures as futures

    weights = [float(weight) for weight in np.linspace(0.5, 30, 60)]
    expected = table.post("/predict", {"rows": [{"weight": weight} for weight in weights]})["answers"]

    def ask(weight):
        bad = weight > 29  # fails alone, not with the others of its group
        answer = table.client.post("/predict", json={"row": {"weight": "heavy" if bad else weight}})
        return answer.status_code if bad else answer.json()["answers"][0]

    with futures.ThreadPoolExecutor(12) as pool:
        given = list(pool.map(ask, weights))
    for weight, one, answer in zip(weights, given, expected):
        if weight > 29:
            assert one == 422
        else:
            assert one["prediction"] == answer["prediction"]
            assert one["probability"] == pytest.approx(answer["probability"], rel=1e-9)


def test_errors_name_row_column_and_remedy(table):
    problem = table.post("/predict", {"rows": [ROW, {"weight": "heavy"}]}, 422)
    assert (problem["row"], problem["columns"], problem["status"]) == (1, ["weight"], 422)
    assert "heavy" in problem["detail"]
    assert problem["remedy"]
    problem = table.post("/predict", {"row": {"wieght": 3}}, 422)
    assert "Did you mean 'weight'?" in problem["remedy"]
    problem = table.post("/predict", {"row": ROW, "prior": {"wolf": 0.5}}, 422)
    assert "wolf" in problem["detail"]
    assert "not known" in table.post("/predict", {"row": ROW, "priors": {}}, 422)["detail"]


def test_numbers_of_lessons_that_change_an_answer(running, spam):
    made = running.post("/change", {"text": TEXT, "to": "ham"})["lessons"]
    predicted = running.post("/predict", {"text": TEXT})["answers"][0]["prediction"]
    assert predicted == "spam"

    def after(n):
        return spam.blank().merge(spam).learn([TEXT] * n, ["ham"] * n).predict([TEXT])[0]

    assert (after(made - 1), after(made)) == ("spam", "ham")


def test_a_model_fitted_on_an_array_takes_lists_of_numbers(tmp_path):
    from service.running import Running

    X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([0, 2], 30)[:, None]
    y = np.repeat([0, 1], 30)
    clf = deciban.GenerativeClassifier().fit(X, y)
    clf.save(tmp_path / "array.deciban")
    with Running(tmp_path / "array.deciban") as service:
        answer = service.post("/predict", {"rows": [[1.0, None, 0.5], [2, 2, 2]]})["answers"]
        known = clf.predict_proba(np.array([[1.0, np.nan, 0.5], [2, 2, 2]]))
        np.testing.assert_allclose([list(one["probabilities"].values()) for one in answer], known, rtol=1e-12)
        service.post("/learn", {"row": [2, 2, 2], "label": 1})
        assert service.get("/model?after=1")["classes"][1] == {"name": "1", "rows": 31.0, "prior": 31 / 61}
        assert service.post("/predict", {"row": [1.0, 2.0]}, 422)["row"] == 0


def test_an_internal_error_refuses_one_request_of_those_answered_together(models, tmp_path, monkeypatch):
    import asyncio
    import shutil

    from deciban.service import answers
    from deciban.service.messages import Asked
    from deciban.service.teacher import Teacher

    def predictions(published, likelihood, options=answers.PLAIN, setting=None):
        return [1 / 0] if options.unit == "bits" else original(published, likelihood, options, setting)

    original = answers.predictions
    monkeypatch.setattr(answers, "predictions", predictions)
    teacher = Teacher(shutil.copy(models / "texts.deciban", tmp_path / "texts.deciban"))

    async def ask():
        small = answers.SmallRequests(teacher)
        units = ("bits", "nats")
        asked = [small.ask(Asked([TEXT], options=answers.Options(unit=unit))) for unit in units]
        return await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 10)

    bad, good = asyncio.run(ask())
    teacher.close()
    assert isinstance(bad, ZeroDivisionError)
    assert good[1][0]["prediction"] == "spam"
