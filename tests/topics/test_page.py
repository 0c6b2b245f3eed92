"""The page of topics: whole in one file, and it answers to slider, map and list in a real browser."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest

from deciban import PLSA, TopicModel
from deciban.errors import InputError
from deciban.topics.words import page_data, relevance
from topics.browser import Browser, missing

SEA = ["The ships sail the <wide> sea & the stormy sea", "Boats at sea, ships in harbour"]
WILD = ["Wolves hunt sheep at night", "Sheep flee the wolves; the wolves hunt"]
TEXTS = (SEA + WILD) * 30
LEFT, RIGHT = "\ue012", "\ue014"  # arrow keys, as WebDriver spells them


@pytest.fixture(scope="module")
def model():
    return TopicModel(3, random_state=0).fit(TEXTS)


@pytest.fixture
def page(model, tmp_path):
    path = tmp_path / "topics.html"
    model.to_html(path, TEXTS, title="Sea </script> & wild")
    return path


def test_it_asks_nothing_of_the_network(page):
    text = page.read_text()
    assert not re.search(r"(src|href)\s*=|@import|url\(", text)
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}


def test_its_data_are_the_models(model, page):
    data = json.loads(re.search(r'application/json">(.*?)</script>', page.read_text(), re.DOTALL).group(1))
    assert data == json.loads(json.dumps(page_data(model, TEXTS)))
    for k, topic in enumerate(data["topics"]):
        assert topic["share"] == pytest.approx(model.prevalence_[k])
        for word, p, marginal in topic["words"]:
            w = model.vocabulary_.tolist().index(word)
            assert p == pytest.approx(model.topics_[k, w], rel=1e-3)
            assert marginal == pytest.approx(model.prevalence_ @ model.topics_[:, w], rel=1e-3)


def test_documents_are_shown_as_they_were_written(model):
    for document in page_data(model, TEXTS)["documents"]:
        assert "".join(part for part, _ in document["parts"]) in TEXTS


def test_counts_cannot_be_shown_as_texts(model, tmp_path):
    with pytest.raises(InputError, match="texts, not counts"):
        model.to_html(tmp_path / "page.html", np.ones((2, 3)))


def test_plsa_has_a_page_too(tmp_path):
    PLSA(2, random_state=0).fit(TEXTS).to_html(tmp_path / "page.html", TEXTS)
    assert "Map of topics" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=f"needs a browser: {missing()}")
def test_slider_map_and_list_work_in_a_browser(model, page, tmp_path):
    with Browser() as browser:
        browser.open(page)
        assert browser.text("#title") == "Sea </script> & wild"
        assert browser.run("return document.querySelectorAll('#map circle').length") == 3
        largest = int(model.prevalence_.argmax())
        assert browser.text("#heading").startswith(f"Topic {largest}:")
        assert shown(browser) == expected(model, largest, 0.6)
        browser.press("#lambda", LEFT * 12)
        assert browser.text("#shown") == "0.00"
        assert shown(browser) == expected(model, largest, 0.0)
        browser.press("#lambda", RIGHT * 20)
        assert browser.text("#shown") == "1.00"
        assert shown(browser) == expected(model, largest, 1.0)
        other = (largest + 1) % 3
        browser.click("#next")
        assert browser.text("#heading").startswith(f"Topic {other}:")
        browser.run(
            "document.querySelector(`#map circle[data-topic='${arguments[0]}']`).dispatchEvent("
            "new MouseEvent('click'))",
            largest,
        )
        assert browser.text("#heading").startswith(f"Topic {largest}:")
        assert browser.run("return document.querySelectorAll('article u').length") > 3
        browser.screenshot(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 10_000


def shown(browser):
    return browser.run("return [...document.querySelectorAll('#words b')].map(word => word.textContent)")


def expected(model, k, lam):
    """Words as the page has them: with probabilities of four figures, the more probable first among equals."""
    candidates = next(t for i, t in enumerate(page_data(model, None)["topics"]) if i == k)["words"]
    with np.errstate(divide="ignore"):
        score = [lam * np.log(p) + (1 - lam) * np.log(p / q) for _, p, q in candidates]
    order = sorted(range(len(candidates)), key=lambda i: -score[i])[:24]
    exact = relevance(model.topics_, model.prevalence_, lam)[k]
    words = model.vocabulary_.tolist()
    first = [candidates[i][0] for i in order]
    falling = [exact[words.index(word)] for word in first]
    assert all(a >= b - 1e-3 for a, b in pairwise(falling))
    return first
