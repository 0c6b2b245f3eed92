"""Names that hold signs, values that formats have no sign for, and empty texts, on the command line."""

import csv
import json

import pytest

from deciban import Categorical, GenerativeClassifier
from deciban.cli.arguments import cost_of, prior_of


def test_classes_may_hold_the_signs_of_options():
    classes = ["n=1", "n=2", "a:b"]
    assert prior_of(["n=1=.25", "a:b=.5"], classes) == {"n=1": 0.25, "a:b": 0.5}
    assert cost_of(["n=1:n=2=3", "a:b:n=1=4"], classes) == {("n=1", "n=2"): 3.0, ("a:b", "n=1"): 4.0}


@pytest.fixture
def certain(said_alone):
    """A model that is certain of its answers: colours were seen in one class only."""
    with open("rows.csv", "w") as file:
        file.write("colour,label\n" + "red,a\nblue,b\n" * 10)
    GenerativeClassifier({"colour": Categorical()}, rule="ml").fit("rows.csv", "label").save("rows.deciban")
    return said_alone


@pytest.mark.filterwarnings("ignore::deciban.errors.ImpossibleRowWarning")
def test_infinite_evidence_keeps_its_sign(certain):
    with open("new.csv", "w") as file:
        file.write("colour\nred\nblue\n")
    for prior in ([], ["--prior", "a=1"]):  # with a prior of 1 the evidence may be against the decision
        found = certain("predict", "rows.deciban", "new.csv", "--json", *prior)
        assert found.code == 0, found.err
        rows = [json.loads(line) for line in found.out.splitlines()]
        expected = ["inf", "inf" if not prior else "-inf"]
        assert [row["evidence"] for row in rows] == expected, prior
        plain = certain("predict", "rows.deciban", "new.csv", *prior).out.splitlines()
        assert [float(row["evidence"]) for row in csv.DictReader(plain)] == [float(sign) for sign in expected]


def test_an_empty_text_is_not_a_missing_one(certain):
    with open("new.jsonl", "w") as file:
        file.write('{"colour": "red", "note": ""}\n{"colour": "blue", "note": null}\n')
    found = certain("predict", "rows.deciban", "new.jsonl", "--append")
    assert found.code == 0, found.err
    header, *rows = found.out.splitlines()
    assert header.startswith("colour,note,")
    assert [row.split(",")[1] for row in rows] == ['""', ""]
