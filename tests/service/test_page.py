"""The page in a real browser: it shows the numbers of the library, without serious violations of accessibility."""

import re

import numpy as np
import pytest

import deciban
from service.running import Running
from topics.browser import NO_AXE, Browser, missing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(missing() is not None, reason=f"needs a browser: {missing()}"),
]
TEXT = "win a free lunch today"
CLASSIFIED = "return document.querySelector('#headline').innerText && !document.querySelector('#answer').hidden"


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture
def page(browser, texts_model):
    with Running(texts_model) as service:
        browser.log()
        browser.resize(1280)
        browser.open(f"{service.address}/")
        browser.wait("return document.querySelector('#text') !== null")
        yield service
        found = [line for line in browser.log() if line["level"] == "SEVERE"]
        assert found == []


def classify(browser, text=TEXT):
    browser.run("document.querySelector('#text').value = arguments[0]", text)
    browser.click("#classify")
    browser.wait(CLASSIFIED)


def number(text: str) -> float:
    return float(re.search(r"[+−]?\d+\.\d", text)[0].replace("−", "-"))


def cells(browser, selector):
    return browser.run(
        "return [...document.querySelectorAll(arguments[0])].map(tr => [...tr.cells].map(td => td.innerText))", selector
    )


def test_teach_undo_prior_and_costs_show_the_librarys_numbers(browser, page, models):
    clf = deciban.load(models / "texts.deciban")
    classify(browser)
    over, against = browser.text("#over"), browser.text("#against")

    def posterior(**prior):
        made = clf.explain([TEXT], over, against, **prior).to_dict("decibans")
        return made["posterior"][0], made["evidence"][0]

    def shown():
        return number(browser.text("#odds"))

    answer, evidence = posterior()
    assert shown() == pytest.approx(answer, abs=0.051)
    parts = cells(browser, "#bars tbody tr")
    assert sum(number(part[2]) for part in parts) == pytest.approx(evidence, abs=0.05 * len(parts) + 0.01)
    foot = {line[0]: number(line[2]) for line in cells(browser, "#bars tfoot tr")}
    assert foot["evidence"] + foot["prior"] == pytest.approx(foot["answer"], abs=0.11)
    known = clf.explain([TEXT], over, against).to_dict("decibans")
    terms = dict(zip(known["names"], known["parts"][0]))
    for name, _, dban, _ in parts:
        if name in terms:
            assert number(dban) == pytest.approx(terms[name], abs=0.051)

    # the slider moves the prior: -20 decibans are 1 in 101
    slide = "const s = document.querySelector('#prior'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"
    browser.run(slide, -20)
    wanted = posterior(prior={over: 1 / 101})[0]
    browser.wait(
        "const shown = document.querySelector('#odds').innerText.replace('−', '-');"
        "return Math.abs(parseFloat(shown) - arguments[0]) < .051",
        wanted,
    )
    assert browser.text("#prior-value") == "0.99 %"
    # costs
    browser.run("const c = document.querySelector('#cost-0'); c.value = '1000'; c.dispatchEvent(new Event('input'))")
    decided = clf.decide([TEXT], prior={over: 1 / 101}, cost={(against, over): 1000})[0]
    browser.wait(
        "return document.querySelector('#decision').innerText.startsWith(arguments[0])", f"Decide {decided.label}"
    )
    browser.click("#prior-reset")
    browser.wait("return document.querySelector('#prior-value').innerText.includes('as learnt')")
    assert shown() == pytest.approx(answer, abs=0.051)

    # teach, and undo
    browser.click(f"#teach-classes button[data-class='{against}']")
    browser.wait(
        "return !document.querySelector('#taught').hidden && document.querySelector('#lessons').children.length"
    )
    clf.learn([TEXT], np.array([against], dtype=object))
    after = posterior()[0]
    found = re.findall(r"[+−]\d+\.\d", browser.text("#taught-text"))
    assert [number(one) for one in found] == [pytest.approx(answer, abs=0.051), pytest.approx(after, abs=0.051)]
    assert shown() == pytest.approx(after, abs=0.051)
    learnt = next(one["prior"] for one in page.get("/model")["classes"] if one["name"] == over)
    learnt_text = f"{100 * learnt:.1f} % (as learnt)"
    browser.wait("return document.querySelector('#prior-value').innerText === arguments[0]", learnt_text)
    browser.click("#undo")
    browser.wait("return document.querySelector('#undone').innerText.startsWith('Undone')")
    browser.wait("return document.querySelector('#lessons').children.length === 2")
    assert shown() == pytest.approx(answer, abs=0.051)
    history = page.get("/history")["lessons"]
    assert [one["kind"] for one in history] == ["unlearn", "learn"]
    assert re.match(r"About \d+ such lessons? would change this to", browser.text("#change"))


def test_unsure_rows_are_offered_and_leave_the_pile_when_taught(browser, page):
    texts = ["lunch win", "free meeting", "prize at noon", "cash today"]
    page.post("/unsure", {"texts": texts})
    browser.open(f"{page.address}/")
    browser.wait("return !document.querySelector('#unsure-next').hidden")
    first = page.get("/unsure")["next"][0]["row"]
    assert browser.text("#unsure-row") == first
    browser.click("#unsure-classes button[data-class='spam']")
    browser.wait("return document.querySelector('#unsure-count').innerText.startsWith('3 rows')")
    second = page.get("/unsure?after=1")["next"][0]["row"]
    browser.wait("return document.querySelector('#unsure-row').innerText === arguments[0]", second)
    assert second != first
    lesson = page.get("/history")["lessons"][0]
    assert lesson["offered"] or lesson["asked"]


def test_classes_are_added_renamed_and_merged(browser, page):
    classify(browser)
    browser.press("#new-class-name", "news")
    browser.click("#new-class button")
    browser.wait("return document.querySelectorAll('#class-list tr').length === 3")
    browser.run(
        "document.querySelector('#classes details').open = true; document.querySelector('#rename-was').value = 'news'"
    )
    browser.press("#rename-now", "ham")
    browser.click("#rename button")
    browser.wait("return document.querySelectorAll('#class-list tr').length === 2")
    assert [one["name"] for one in page.get("/model")["classes"]] == ["ham", "spam"]
    assert browser.text("#lesson-2 b") == "Lesson 2: news is shown as ham"
    browser.wait("return document.querySelector('#lesson-2 button') !== null")
    browser.click("#lesson-2 button")
    browser.wait("return document.querySelectorAll('#class-list tr').length === 3")


def test_texts_from_outside_are_not_run(browser, page):
    script = "<img src=x onerror='document.title=1'><script>document.title=1</script>"
    page.post("/learn", {"text": script, "label": script, "who": script})
    page.post("/unsure", {"text": script})
    browser.open(f"{page.address}/")
    browser.wait("return document.querySelector('#lessons').children.length === 1")
    classify(browser, script)
    assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
    assert browser.run("return document.title") == "texts – deciban"


@pytest.mark.skipif(NO_AXE, reason="needs axe-core-python")
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "light"), (1280, "dark"), (390, "dark")])
def test_axe_finds_nothing_serious_and_nothing_overflows(browser, page, width, scheme):
    browser.resize(width)
    browser.colours(scheme)
    page.post("/unsure", {"texts": ["lunch win", "free meeting"]})
    browser.open(f"{page.address}/")
    browser.wait("return document.querySelector('#text') !== null")
    assert browser.serious_violations() == []
    classify(browser)
    browser.click("#teach-classes button")
    browser.wait("return document.querySelector('#lessons').children.length")
    assert browser.serious_violations() == []
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_a_pasted_line_fills_the_fields_or_says_why_not(browser, tmp_path):
    import polars as pl

    rng = np.random.default_rng(0)
    frame = pl.DataFrame({
        "id": np.arange(80), "weight": rng.normal(size=80), "age": rng.gamma(2.0, size=80), "kind": ["cat", "dog"] * 40,
    })  # fmt: skip
    clf = deciban.GenerativeClassifier().fit(frame, "kind")
    clf.save(tmp_path / "pets.deciban")
    paste = (
        "const line = document.querySelector('#line'); line.value = arguments[0];"
        "line.dispatchEvent(new Event('input')); return document.querySelector('#line-note').innerText"
    )
    values = "return [...document.querySelectorAll('#fields input[name]')].map(field => field.value)"
    with Running(tmp_path / "pets.deciban") as service:
        browser.resize(1280)
        browser.open(f"{service.address}/")
        browser.wait("return document.querySelector('#line') !== null")
        assert service.get("/model")["given"] == ["id", "weight", "age"]
        assert browser.run(paste, "0.5,3") == ""
        assert browser.run(values) == ["0.5", "3"]
        assert browser.run(paste, "81,0.25,4") == ""  # a line of the file, with the column that the model ignores
        assert browser.run(values) == ["0.25", "4"]
        note = "5 values; a line has 2 (weight, age), or the 3 of the file that was learnt, without the class."
        assert browser.run(paste, "81,0.25,4,dog,5") == f"{note} The fields are not changed."
        assert browser.run(values) == ["0.25", "4"]
        assert "JSON" in browser.run(paste, '{"weight": ')
        assert browser.run(paste, '{"weight": 7}') == ""
        assert browser.run(values) == ["7", ""]


def test_on_a_phone_the_answer_comes_into_view(browser, page):
    browser.resize(390, 700)
    browser.open(f"{page.address}/")
    browser.wait("return document.querySelector('#text') !== null")
    browser.run("document.querySelector('#ask').style.minHeight = '900px'")  # a form of many fields
    classify(browser)
    top = "document.querySelector('#answer').getBoundingClientRect().top"
    browser.wait(f"return {top} > -1 && {top} < 350")


def test_what_a_lesson_changed_adds_up(browser, page):
    words = "win a free lunch today at noon prize cash meeting call now money claim urgent reply team report agenda"
    classify(browser, words)
    browser.click("#teach-classes button")
    browser.wait("return !document.querySelector('#taught').hidden")
    lines = {name: (number(was), number(now)) for name, was, now in cells(browser, "#changes tr") if "prob" not in name}
    answer = lines.pop("answer in decibans")
    assert "evidence of all other parts" in lines
    for column in (0, 1):
        assert sum(line[column] for line in lines.values()) == pytest.approx(answer[column], abs=0.5)


def test_long_explanations_show_the_largest_parts_and_their_sum(browser, page, models):
    words = "win a free lunch today at noon prize cash meeting call now money claim urgent reply team report agenda"
    classify(browser, words)
    explained = page.post("/explain", {"text": words})["answers"][0]
    own = [part["evidence"] for part in explained["parts"] if part.get("kind") != "other"]
    shown = cells(browser, "#bars tbody tr")
    assert len(own) > 12 > 0
    assert [number(line[2]) for line in shown[:10]] == [pytest.approx(part, abs=0.051) for part in own[:10]]
    assert shown[10][0] == f"{len(own) - 10} smaller parts"
    assert number(shown[10][2]) == pytest.approx(sum(own[10:]), abs=0.051)
    browser.click("#all-parts")
    assert len(cells(browser, "#bars tbody tr")) == len(explained["parts"])
