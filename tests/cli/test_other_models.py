"""Clusters, topics and tags: what nobody, or only some files, named."""

import csv
import io
import json

import numpy as np
import pytest


@pytest.fixture
def flowers(here):
    from sklearn.datasets import load_iris

    data = load_iris()
    lines = [",".join([*map(str, row), data.target_names[t]]) for row, t in zip(data.data, data.target)]
    (here / "flowers.csv").write_text("\n".join(["a,b,c,d,species", *lines]) + "\n")
    return data


def test_clusters_are_found_in_a_table(flowers, said):
    found = said("cluster", "flowers.csv", "-k", "3", "--ignore", "species", "--append", "--seed", "0")
    assert found.code == 0, found.err
    rows = list(csv.DictReader(io.StringIO(found.out)))
    assert len(rows) == 150
    setosa = {row["cluster"] for row in rows if row["species"] == "setosa"}
    assert len(setosa) == 1
    assert setosa.isdisjoint({row["cluster"] for row in rows if row["species"] == "virginica"})
    assert "3 clusters" in found.err


def test_a_size_may_be_chosen_and_must_be_one(flowers, said):
    found = said("cluster", "flowers.csv", "-k", "1-4", "--ignore", "species", "--save", "m.deciban")
    assert "chosen by BIC among 1 to 4" in found.err
    assert said("predict", "m.deciban", "flowers.csv").out.startswith("cluster,probability,outlier\n")
    for wrong in ("0", "4-2", "some"):
        assert said("cluster", "flowers.csv", "-k", wrong).code == 2


def test_topics_are_found_in_texts(here, said):
    rng = np.random.default_rng(0)
    words = {"sea": ["boat", "wave", "sail", "fish"], "sky": ["cloud", "plane", "wing", "star"]}
    texts = [" ".join(rng.choice(words[kind], 12)) for kind in ("sea", "sky") * 60]
    (here / "texts.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)))
    asked = ("topics", "texts.jsonl", "--text", "text", "-k", "2", "--words", "4")
    told = json.loads(said(*asked, "--json", "--html", "page.html").out)
    assert sorted(sorted(topic["words"]) for topic in told["topics"]) == sorted(map(sorted, words.values()))
    assert "boat" in (here / "page.html").read_text()
    assert "boat" in said(*asked).out
    assert said("topics", "texts.jsonl", "--text", "txt").code == 2


def test_words_are_tagged_as_the_tagged_ones_were(here, said):
    sentences = ["the\tDET\ndog\tNOUN\nbarks\tVERB\n", "a\tDET\ncat\tNOUN\nsleeps\tVERB\n"] * 4
    (here / "tagged.tsv").write_text("\n".join(sentences))
    (here / "new.txt").write_text("the cat barks\na dog sleeps\n")
    text = said("tag", "tagged.tsv", "new.txt", "--save", "tags.deciban").out
    assert text == "the\tDET\ncat\tNOUN\nbarks\tVERB\n\na\tDET\ndog\tNOUN\nsleeps\tVERB\n\n"
    assert said("tag", "tags.deciban", "new.txt").out == text
    lines = [json.loads(line) for line in said("tag", "tags.deciban", "new.txt", "--json").out.splitlines()]
    assert lines[1] == {"words": ["a", "dog", "sleeps"], "tags": ["DET", "NOUN", "VERB"]}
    assert json.loads(said("tag", "tagged.tsv", "tagged.tsv", "--evaluate", "--json").out)["accuracy"] == 1
    assert said("tag", "new.txt", "new.txt").code == 1
    assert said("tag", "tumours.deciban", "new.txt").code == 2


def test_conllu_is_read_as_it_is_written(here, said):
    line = "1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n"
    (here / "some.conllu").write_text(f"# text = Dogs bark\n{line}\n" * 3)
    assert json.loads(said("tag", "some.conllu", "some.conllu", "--evaluate", "--json").out)["accuracy"] == 1
