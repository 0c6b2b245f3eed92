"""Writes the golden files that are not there yet: `python tests/store/write_golden.py`. Never write one again.

A golden file and its answers show that files of a version load for ever. A new kind of model gets a new file.
"""

import json
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pandas as pd
import scipy.sparse as sp

from deciban import (
    PCA,
    PLSA,
    Bernoulli,
    Binned,
    Categorical,
    ClassTopics,
    Fisher,
    Gamma,
    Gaussian,
    GaussianWithGaps,
    GenerativeClassifier,
    HiddenMarkovModel,
    HMMClassifier,
    Mixture,
    MixtureModel,
    Multinomial,
    Poisson,
    Product,
    SemiSupervised,
    Text,
    TopicModel,
    Transformed,
    release,
    save,
)
from store.answers import answers

GOLDEN = Path(__file__).parent / "golden"
FORMAT = 1
y = np.array(["no", "yes", "yes", "no", "yes", "no", "yes", "no"])
TABLE = np.array(
    [
        [1.5, 2.0, "red", 3],
        [2.25, 1.0, "grün", 0],
        [2.5, 1.75, "red", 1],
        [0.5, 2.5, "blue", 4],
        [3.0, 0.5, "grün", 0],
        [1.0, 3.25, "red", 2],
        [2.75, 1.5, "blue", 1],
        [0.25, 2.25, "red", 5],
    ],
    dtype=object,
)
COUNTS = np.array([[2, 0, 1], [0, 3, 1], [1, 2, 0], [4, 0, 0], [0, 1, 1], [3, 1, 0], [0, 2, 2], [1, 0, 1]])
MANY = [[f"word {i % 40}"] for i in range(80)]
SCORES = ("classes", "sums", "log_likelihood", "predict_proba")
WHOLE = (*SCORES, "leave_one_out", "learn", "unlearn")
HIDDEN = (*SCORES, "learn")  # models of hidden variables have no exact leave-one-out and no exact unlearning


@dataclass(frozen=True)
class Golden:
    """A model to write, rows to ask about, and the questions whose answers are stored."""

    model: Any
    rows: Any  # as JSON holds them
    questions: tuple[str, ...] = SCORES
    more: dict[str, Any] = field(default_factory=dict)  # input, labels, key, new


# -- data: fixed numbers of a fixed generator --------------------------------------------------------------------------
rng = np.random.default_rng(13)
N = 240
codes = rng.integers(0, 2, N)
LABELS = np.array(["ham", "spam"])[codes]
WORDS = np.array(
    [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "omicron",
        "prize",
    ]
)
CHANCES = np.array([np.linspace(2, 0.2, 16), np.linspace(0.2, 2, 16)])
TEXTS = [" ".join(rng.choice(WORDS, rng.integers(4, 18), p=CHANCES[c] / CHANCES[c].sum())) for c in codes]
TEXTS[1], TEXTS[3] = "Grüße, 日本 Straße!", ""
NUMBERS = rng.normal(3.0, 1.0, (N, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 1.0]])
NUMBERS[:, 0] += codes
GAPPY = np.where(rng.random((N, 3)) < 0.1, np.nan, NUMBERS)
FLAGS = (rng.random((N, 5)) < 0.2 + 0.3 * codes[:, None] * np.arange(5) / 4).astype(float)
EVENTS = rng.poisson(1.0 + codes[:, None] * np.arange(4) / 2, (N, 4))
FRAME = pd.DataFrame(
    {
        "height": NUMBERS[:, 0].round(3),
        "width": NUMBERS[:, 1].round(3),
        "depth, cm": np.where(rng.random(N) < 0.1, np.nan, NUMBERS[:, 2].round(3)),
        "income": np.exp(NUMBERS[:, 2] + codes).round(2),
        "spent": np.where(rng.random(N) < 0.5, 0.0, rng.uniform(5, 9, N).round(2) * (1 + codes)),
        "events": EVENTS[:, 3],
        "colour": np.where(rng.random(N) < 0.1, None, rng.choice(["red", "grün", "blue"], N)),
        "member": rng.random(N) < 0.3 + 0.4 * codes,
        "since": pd.date_range("2021-01-01", periods=N, freq="31h").strftime("%Y-%m-%d"),
        "note": [f"{text} {i % 7}" for i, text in enumerate(TEXTS)],
        "id": [f"row-{i:05d}" for i in range(N)],
    }
)
PURCHASES = FRAME[["height", "width", "income", "spent", "events", "colour", "member", "note"]].assign(
    colour=rng.choice(["red", "grün", "blue"], N)
)
SEQUENCES = [rng.integers(0, 2, 12).cumsum() % 3 if c else rng.integers(0, 3, 9) for c in codes[:30]]
SEQUENCES = [each.tolist() for each in SEQUENCES]
ASKED = list(range(5))


def records(frame):
    """Rows of a frame as JSON holds them; null where a value is missing."""
    return json.loads(frame.iloc[ASKED].to_json(orient="records"))


def labelled(input, key=None):
    """The first rows with their labels."""
    return {"input": input, "labels": LABELS[ASKED].tolist()} | ({"key": key} if key else {})


# -- models ------------------------------------------------------------------------------------------------------------
def models():
    """Name → model and rows to ask about."""
    families = {(0, 1): Gaussian("tied"), 2: Categorical(), 3: Poisson()}
    mixed = GenerativeClassifier(families, rule="predictive", prior={"yes": 0.25}, cost={("yes", "no"): 3.0}).fit(
        TABLE, y
    )
    ledger = GenerativeClassifier(Multinomial(), ledger="the golden key").fit(COUNTS, y).decay(0.5).learn(COUNTS, y)
    words = GenerativeClassifier(Categorical(open=True), classes=["a", "b"]).fit(MANY, ["a", "b"] * 40)
    known = GenerativeClassifier.from_densities({1: Gaussian.of(0.0, 1.0), 2: Gaussian.of(1.0, 4.0)})
    numbers = TABLE[:, :2].astype(float)
    first = {
        "mixed": Golden(mixed, TABLE.tolist()),
        "mixed-released": Golden(release(mixed), TABLE.tolist()),
        "ledger": Golden(ledger, COUNTS.tolist()),
        "words": Golden(words, [*MANY[:3], ["none of them"]]),
        "known": Golden(known, [[0.5], [2.0]]),
        "full": Golden(GenerativeClassifier(Gaussian("full")).fit(numbers, y), numbers.tolist()),
    }
    far = np.r_[NUMBERS, NUMBERS[:1]]
    far[-1, 0] = 1e9
    for structure in ("full", "diagonal"):
        model = GenerativeClassifier(Gaussian(structure)).fit(far, [*LABELS, LABELS[0]])
        first[f"gaussian-{structure}-far-row"] = Golden(model, NUMBERS[ASKED].tolist())
    heavy = GenerativeClassifier(Poisson()).fit(COUNTS, y, sample_weight=np.linspace(0.5, 1.5, len(y))).learn(COUNTS, y)
    first["poisson-weights"] = Golden(heavy, COUNTS.tolist())
    return first | texts() | tables() | calibrated() | sparse() | hidden() | sequences() | topics() | unlabelled()


def texts():
    """Documents: the default, vocabularies, transforms and readings of words; learnt in batches with a ledger."""
    made = {
        "text": Text(),
        "text-growing": Text("multinomial", "log", 0.5, vocabulary="growing", unk=2.0),
        "text-given": Text("bernoulli", "auto", 1.5, vocabulary=["alpha", "beta", "prize", "grüße"]),
        "text-polya": Text("polya", "counts", 0.75, ngrams=(1, 2), stop_words=["mu", "nu"], most=30),
        "text-idf": Text("multinomial", "log+idf", 1.0),
        "text-unit": Text("multinomial", "log+idf+unit", "loo", stem="english", strip_accents="unicode", most=10),
        "text-letters": Text("multinomial", "binary", "evidence", unit="char_wb", ngrams=(2, 3), max_df=0.5, most=40),
    }
    fitted = {name: GenerativeClassifier(family).fit(TEXTS, LABELS) for name, family in made.items()}
    fitted["text"] = GenerativeClassifier().fit(TEXTS, LABELS)
    fitted["text-learnt"] = GenerativeClassifier(Text(), ledger="the golden key").fit(TEXTS[:70], LABELS[:70])
    fitted["text-learnt"].decay(0.75).learn(TEXTS[70:90], LABELS[70:90])
    new = {"new": ["unheard alpha prize", "", "Beta ETA"]}
    keys = {"text-learnt": "the golden key"}
    questions = {"text-learnt": ("prequential",)}
    found = {
        name: Golden(
            clf, TEXTS[:5], (*WHOLE, "of_new", *questions.get(name, ())), labelled("texts", keys.get(name)) | new
        )
        for name, clf in fitted.items()
    }
    for name in ("text", "text-unit"):
        found[f"{name}-released"] = Golden(
            release(fitted[name]), TEXTS[:5], (*SCORES, "of_new"), {"input": "texts"} | new
        )
    return found


def tables():
    """Frames: the default with its schema, and every family as a block, under two rules, whole and released."""
    auto = GenerativeClassifier().fit(FRAME, LABELS)
    clean = GenerativeClassifier(ledger=True).fit(FRAME[["height", "width", "colour"]][:60], LABELS[:60])
    families = {
        ("height", "width"): Gaussian("full"),
        "income": Transformed("log"),
        "spent": Binned(4),
        "events": Poisson(),
        "colour": Categorical(),
        "member": Bernoulli(),
        "note": Text("multinomial", "counts", 1.0, min_df=3),
    }
    every = GenerativeClassifier(families).fit(PURCHASES, LABELS)
    predictive = every.reestimate(rule="predictive")
    # experts: pairs of columns, gaps, and a block beside its columns
    own = np.random.default_rng(14)
    sides = pd.DataFrame({"side": own.choice(["left", "right"], N), "sign": own.choice(["plus", "minus"], N)})
    sides["size"] = np.where(own.random(N) < 0.1 + 0.4 * codes, np.nan, NUMBERS[:, 1].round(3))
    sides["height"], sides["width"] = NUMBERS[:, 0].round(3), NUMBERS[:, 2].round(3)
    odd = np.where((sides["side"] == "left") == (sides["sign"] == "plus"), "even", "odd")
    odd = np.where(own.random(N) < 0.15, LABELS, odd)
    beside = GenerativeClassifier().fit(sides, odd)
    found = {
        "table": Golden(auto, records(FRAME), WHOLE, labelled("frame")),
        "smooth-experts": Golden(beside, records(sides), WHOLE, {"input": "frame", "labels": odd[ASKED].tolist()}),
        "experts": Golden(beside, records(sides), WHOLE, {"input": "frame", "labels": odd[ASKED].tolist()}),
        "experts-released": Golden(release(beside), records(sides), SCORES, {"input": "frame"}),
        "table-released": Golden(release(auto), records(FRAME), SCORES, {"input": "frame"}),
        "table-ledger": Golden(clean, records(FRAME[["height", "width", "colour"]]), WHOLE, labelled("frame")),
        "blocks": Golden(every, records(PURCHASES), WHOLE, labelled("frame")),
        "blocks-predictive-released": Golden(release(predictive), records(PURCHASES), SCORES, {"input": "frame"}),
    }
    three = np.array([10, 20, 30])[(codes + (NUMBERS[:, 1] > 4)).astype(int)]
    labels = {"input": "numbers", "labels": three[ASKED].tolist()}
    for structure in ("tied", "diagonal", "tied diagonal", "spherical", "tied spherical", "auto"):
        clf = GenerativeClassifier(Gaussian(structure)).fit(NUMBERS, three, rng.uniform(0.5, 2.0, N))
        questions = (*SCORES, "learn")  # the weights of the rows asked about are not stored
        found[f"gaussian-{structure.replace(' ', '-')}"] = Golden(clf, NUMBERS[ASKED].tolist(), questions, labels)
        if structure in ("tied", "diagonal", "spherical"):
            sure = release(clf.reestimate(rule="predictive"))
            found[f"gaussian-{structure}-released"] = Golden(sure, NUMBERS[ASKED].tolist(), SCORES, labels)
    waits = GenerativeClassifier(Gamma()).fit(np.exp(NUMBERS), LABELS)
    asked = np.exp(NUMBERS)[ASKED].tolist()
    found["gamma"] = Golden(waits, asked, WHOLE, labelled("numbers"))
    found["gamma-released"] = Golden(release(waits), asked, SCORES, {"input": "numbers"})
    sure = release(waits.reestimate(rule="predictive"))
    found["gamma-predictive-released"] = Golden(sure, asked, SCORES, {"input": "numbers"})
    joint = GenerativeClassifier(Categorical(joint=True)).fit(PURCHASES[["colour", "member"]].to_numpy(object), LABELS)
    rows = PURCHASES[["colour", "member"]].to_numpy(object)[ASKED].tolist()
    found["joint"] = Golden(joint, rows, WHOLE, labelled("object"))
    return found


def calibrated():
    """Each kind of calibration that can be asked for."""
    made = {
        "offsets": GenerativeClassifier(Gaussian("tied"), calibrate="offsets").fit(NUMBERS, LABELS),
        "affine": GenerativeClassifier(Gaussian("tied"), calibrate="affine").fit(NUMBERS, LABELS),
        "pav": GenerativeClassifier(Gaussian("tied"), calibrate="pav").fit(NUMBERS, LABELS),
    }
    by_length = GenerativeClassifier(Multinomial(), calibrate="length").fit(EVENTS, LABELS)
    found = {
        f"calibrated-{name}": Golden(clf, NUMBERS[ASKED].tolist(), WHOLE, labelled("numbers"))
        for name, clf in made.items()
    }
    by_blocks = GenerativeClassifier({(0, 1): Gaussian("full"), 2: Gaussian("diagonal")}, calibrate="blocks")
    found["calibrated-blocks"] = Golden(
        by_blocks.fit(NUMBERS, LABELS), NUMBERS[ASKED].tolist(), WHOLE, labelled("numbers")
    )
    found["calibrated-length"] = Golden(by_length, EVENTS[ASKED].tolist(), WHOLE, labelled("numbers"))
    return found


def sparse():
    """Sparse counts and flags."""
    flags = GenerativeClassifier(Bernoulli(1.5, 2.5)).fit(sp.csr_array(FLAGS), LABELS)
    counts = GenerativeClassifier(Multinomial("evidence")).fit(sp.csr_array(EVENTS.astype(float)), LABELS)
    auto = GenerativeClassifier(rule="predictive").fit(sp.csr_array(EVENTS.astype(float)), LABELS)
    return {
        "sparse-bernoulli": Golden(flags, FLAGS[ASKED].tolist(), WHOLE, labelled("sparse")),
        "sparse-bernoulli-released": Golden(release(flags), FLAGS[ASKED].tolist(), SCORES, {"input": "sparse"}),
        "sparse-evidence": Golden(counts, EVENTS[ASKED].tolist(), WHOLE, labelled("sparse")),
        "sparse-predictive-released": Golden(release(auto), EVENTS[ASKED].tolist(), SCORES, {"input": "sparse"}),
    }


def hidden():
    """Mixtures, rows without labels, and Gaussians with gaps."""
    few = LABELS.astype(object)
    few[40:] = None
    semi = SemiSupervised().fit(NUMBERS, few)
    clusters = MixtureModel(range(1, 4), random_state=0).fit(NUMBERS)
    frame = FRAME[["height", "colour", "member"]].fillna({"colour": "none"})
    mixed = MixtureModel(2, random_state=0).fit(frame)
    family = GenerativeClassifier(Mixture(Gaussian("diagonal"), 2)).fit(NUMBERS, LABELS)
    gaps = GenerativeClassifier(GaussianWithGaps("tied")).fit(GAPPY, LABELS)
    alone = Mixture(Poisson(), 2).fit(EVENTS, random_state=0)
    product = Product({0: Poisson(2.0, 1.0), (1, 2, 3): Multinomial(1.5)})
    told = GenerativeClassifier(Mixture(product, 2)).fit(EVENTS, LABELS)
    gappy = [[None if np.isnan(x) else x for x in row] for row in GAPPY[ASKED].tolist()]
    numbers = NUMBERS[ASKED].tolist()
    found = {"input": "numbers"}
    clustered = ("predict", "predict_proba", "score_samples")
    return {
        "semi-supervised": Golden(semi, numbers, ("classes", "predict", "predict_proba", "llr"), found),
        "clusters": Golden(clusters, numbers, clustered, found),
        "clusters-mixed": Golden(mixed, records(frame), clustered, {"input": "frame"}),
        "mixture": Golden(family, numbers, HIDDEN, labelled("numbers")),
        "mixture-fitted": Golden(alone, EVENTS[ASKED].tolist(), ("log_density", "predict_proba"), found),
        "mixture-blocks-released": Golden(release(told), EVENTS[ASKED].tolist(), SCORES, found),
        "mixture-density": Golden(alone.density(), EVENTS[ASKED].tolist(), ("log_density",), found),
        "gaps": Golden(gaps, gappy, HIDDEN, labelled("numbers")),
        "gaps-released": Golden(release(gaps), gappy, SCORES, found),
    }


def sequences():
    """Hidden Markov models: found by EM, counted from known states, of known densities; and one for each class."""
    found = HiddenMarkovModel(Categorical(), 2, n_starts=2, random_state=0).fit(SEQUENCES)
    states = [[("low", "high")[value > 0] for value in each] for each in SEQUENCES]
    counted = HiddenMarkovModel(Categorical()).fit(SEQUENCES, states)
    dice = {"fair": Categorical.of([1 / 3] * 3), "loaded": Categorical.of([0.1, 0.1, 0.8])}
    known = HiddenMarkovModel.from_densities(dice, [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]])
    told = HMMClassifier(Categorical(), 2, n_starts=2, random_state=0).fit(SEQUENCES, LABELS[:30])
    steps = ("classes", "predict", "predict_proba", "score_samples")
    given = {"input": "sequences"}
    return {
        "hmm": Golden(found, SEQUENCES[:4], steps, given),
        "hmm-counted": Golden(counted, SEQUENCES[:4], steps, given),
        "hmm-known": Golden(known, SEQUENCES[:4], steps, given),
        "hmm-classifier": Golden(told, SEQUENCES[:4], ("classes", "predict", "predict_proba", "log_likelihood"), given),
    }


def topics():
    """Topic models, and topics as a family of a classifier."""
    counts = sp.csr_array(EVENTS.astype(float))
    family = GenerativeClassifier(ClassTopics(2)).fit(counts, LABELS)
    asked = ("transform", "top_words", "perplexity")
    return {
        "topics": Golden(TopicModel(3, random_state=0).fit(TEXTS), TEXTS[:5], asked, {"input": "texts"}),
        "topics-stochastic": Golden(
            TopicModel(2, method="scvb0", alpha=0.1, random_state=0).fit(counts),
            EVENTS[ASKED].tolist(),
            ("transform", "perplexity"),
            {"input": "sparse"},
        ),
        "topics-gibbs": Golden(
            TopicModel(2, method="gibbs", n_samples=3, max_iter=20, random_state=0).fit(TEXTS),
            TEXTS[:5],
            asked,
            {"input": "texts"},
        ),
        "plsa": Golden(PLSA(3, random_state=0).fit(TEXTS), TEXTS[:5], asked, {"input": "texts"}),
        "class-topics": Golden(family, EVENTS[ASKED].tolist(), HIDDEN, labelled("sparse")),
        "class-topics-released": Golden(release(family), EVENTS[ASKED].tolist(), SCORES, {"input": "sparse"}),
    }


def unlabelled():
    """Families fitted without classes, and projections."""
    rows, numbers = EVENTS[ASKED].tolist(), {"input": "numbers"}
    both = ("log_density", "log_density_predictive")
    product = Product({(0, 1): Multinomial(), 2: Poisson(), 3: Categorical()}).fit(EVENTS)
    coin = Bernoulli(2.0, 3.0).fit(FLAGS)
    pair = Gaussian("full").fit(NUMBERS)
    return {
        "fitted-coin": Golden(coin, FLAGS[ASKED].tolist(), both, numbers),
        "fitted-released": Golden(release(pair), NUMBERS[ASKED].tolist(), ("log_density",), numbers),
        "fitted-gaussian": Golden(pair, NUMBERS[ASKED].tolist(), both, numbers),
        "fitted-product": Golden(product, rows, both, numbers),
        "pca": Golden(PCA(2).fit(NUMBERS), NUMBERS[ASKED].tolist(), ("transform",), numbers),
        "fisher": Golden(Fisher(1).fit(NUMBERS, LABELS), NUMBERS[ASKED].tolist(), ("transform",), numbers),
    }


def plain(answer):
    """An answer as JSON holds it."""
    return answer.tolist() if isinstance(answer, np.ndarray) else answer


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, for instance: what is stored need not be a good fit
        made = models()
    for name, golden in made.items():
        path = GOLDEN / f"{name}-{FORMAT}.deciban"
        if not path.exists():
            save(golden.model, path)
            asked = {"rows": golden.rows} | golden.more
            found = {name: plain(answer) for name, answer in answers(path, asked, golden.questions).items()}
            lines = [
                f"{json.dumps(key)}: {json.dumps(each, ensure_ascii=False)}" for key, each in (asked | found).items()
            ]
            path.with_suffix(".json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
