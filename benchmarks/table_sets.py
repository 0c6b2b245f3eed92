"""Tables to judge classifiers with: bundled with scikit-learn, of DECIBAN_DATA, and drawn from known models."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine


class Data(NamedTuple):
    """A file of DECIBAN_DATA, the column of labels, and columns that are left out."""

    path: str
    label: str
    drop: tuple[str, ...] = ()


SETS = {
    "adult": Data("adult/adult.csv.gz", "income", ("split",)),
    "titanic": Data("titanic/titanic.csv", "Survived"),
    "penguins": Data("penguins/penguins.csv", "species"),
    "house votes": Data("house_votes_84/house_votes_84.csv", "class"),
    "mushroom": Data("mushroom/mushroom.csv.gz", "class"),
    "credit approval": Data("credit_approval/crx.csv", "A16"),
    "car evaluation": Data("car_evaluation/car.csv", "class"),
}
# the same files with another column as label: tables that no constant was chosen by
OTHER_LABELS = {
    "adult: marital status": Data("adult/adult.csv.gz", "marital-status", ("split", "relationship")),
    "adult: occupation": Data("adult/adult.csv.gz", "occupation", ("split",)),
    "titanic: class": Data("titanic/titanic.csv", "Pclass", ("Name", "Ticket", "Cabin", "PassengerId")),
    "penguins: sex": Data("penguins/penguins.csv", "sex"),
    "mushroom: habitat": Data("mushroom/mushroom.csv.gz", "habitat"),
    "credit: A9": Data("credit_approval/crx.csv", "A9"),
}
Made = Callable[[np.random.Generator], tuple[Any, Any]]


def bundled() -> dict[str, tuple[pd.DataFrame, Any]]:
    """Return tables and labels that scikit-learn has."""
    found = {}
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        bunch = load(as_frame=True)
        found[load.__name__.removeprefix("load_")] = bunch.data, bunch.target.to_numpy()
    diabetes = load_diabetes(as_frame=True, scaled=False)
    found["diabetes, halves"] = diabetes.data, (diabetes.target > diabetes.target.median()).to_numpy().astype(int)
    return found


def from_files(sets: dict[str, Data] = SETS) -> dict[str, tuple[pd.DataFrame, Any]]:
    """Return tables and labels of DECIBAN_DATA; none where it is not set."""
    folder = os.environ.get("DECIBAN_DATA")
    found: dict[str, tuple[pd.DataFrame, Any]] = {}
    for name, data in sets.items() if folder is not None else ():
        frame = pd.read_csv(Path(folder or ".") / data.path, na_values="?").drop(columns=list(data.drop))
        frame = frame[frame[data.label].notna()].reset_index(drop=True)
        found[name] = frame.drop(columns=data.label), frame[data.label].to_numpy()
    return found


def drawn(seed: int = 0) -> dict[str, tuple[pd.DataFrame, Any]]:
    """Return tables drawn from known models, by their names."""
    found = {}
    for name, make in MADE.items():
        X, y = make(np.random.default_rng(seed))
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
        found[name] = frame.rename(columns=lambda column: f"x{column}"), np.asarray(y)
    return found


# -- drawn tables -----------------------------------------------------------------------------------------------------
def _parity(rng: np.random.Generator) -> tuple[Any, Any]:
    X = rng.integers(0, 3, (500, 6))
    y = ((X[:, 0] == X[:, 1]) ^ (rng.random(500) < 0.1)).astype(int)
    return pd.DataFrame(X).map(lambda value: "abc"[value]), y


def _ring(rng: np.random.Generator) -> tuple[Any, Any]:
    y = rng.integers(0, 2, 400)
    angle, radius = rng.uniform(0, 2 * np.pi, 400), np.where(y, 2.0, 1.0) + rng.normal(0, 0.35, 400)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle), rng.normal(size=(400, 3))], y


def _two_bells(rng: np.random.Generator) -> tuple[Any, Any]:
    y = rng.integers(0, 2, 400)
    centres = 1.8 * rng.normal(size=(2, 3, 5))
    return centres[y, rng.integers(0, 3, 400)] + rng.normal(size=(400, 5)), y


def _clean(rng: np.random.Generator) -> tuple[Any, Any]:
    y = np.arange(60) % 3
    return 2.0 * rng.normal(size=(3, 4))[y] + rng.normal(size=(60, 4)), y


def _spectra(rng: np.random.Generator) -> tuple[Any, Any]:
    y = rng.integers(0, 2, 208)
    smooth = np.exp(-0.5 * ((np.arange(60)[:, None] - np.arange(60)[None, :]) / 4) ** 2)
    peak = np.exp(-0.5 * ((np.arange(60) - 20) / 6) ** 2)
    noise = rng.normal(size=(208, 60)) @ smooth / 2.5 + rng.normal(0, 0.2, (208, 60))
    return np.exp(0.5 * (noise + np.where(y, 0.9, -0.2)[:, None] * peak)), y


def _many_classes(rng: np.random.Generator) -> tuple[Any, Any]:
    y = np.arange(600) % 20
    mixing = rng.normal(size=(20, 8, 8)) * 0.3 + np.eye(8)
    return 1.2 * rng.normal(size=(20, 8))[y] + np.einsum("nij,nj->ni", mixing[y], rng.normal(size=(600, 8))), y


def _speakers(rng: np.random.Generator) -> tuple[Any, Any]:
    y = np.arange(990) % 11
    speaker = rng.normal(0, 0.8, (15, 10))[rng.integers(0, 15, 990)]
    return 1.2 * rng.normal(size=(11, 10))[y] + speaker + rng.normal(0, 0.5, (990, 10)), y


def _gaps(rng: np.random.Generator) -> tuple[Any, Any]:
    y = rng.integers(0, 2, 120)
    X = rng.normal(size=(120, 12)) + 0.5 * y[:, None]
    return np.where(rng.random((120, 12)) < np.where(y, 0.5, 0.2)[:, None], np.nan, X), y


def _skewed(rng: np.random.Generator) -> tuple[Any, Any]:
    y = rng.integers(0, 3, 450)
    shape = np.array([[1.0, 2.0, 4.0, 3.0], [1.6, 2.5, 2.5, 3.0], [2.4, 1.5, 4.0, 2.0]])
    return rng.gamma(shape[y], np.array([2.0, 30.0, 0.1, 1.0])), y


def _wide(rng: np.random.Generator) -> tuple[Any, Any]:
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 200))
    X[:, :8] += 0.8 * y[:, None]
    return X, y


def _tree(rng: np.random.Generator) -> tuple[Any, Any]:
    X = rng.uniform(size=(800, 6))
    y = np.where(X[:, 0] < 0.4, X[:, 1] < 0.5, np.where(X[:, 2] < 0.6, X[:, 3] < 0.3, X[:, 1] > 0.7))
    return X, (y ^ (rng.random(800) < 0.05)).astype(int)


def _linear(rng: np.random.Generator) -> tuple[Any, Any]:
    X = rng.standard_t(4, size=(300, 10)) @ (np.eye(10) + 0.3 * rng.normal(size=(10, 10)))
    return X, (X @ rng.normal(size=10) / 2 + rng.logistic(size=300) > 0).astype(int)


def _mixed(rng: np.random.Generator) -> tuple[Any, Any]:
    y = rng.integers(0, 3, 350)
    place = (y + rng.integers(0, 3, 350)) % 4
    frame = pd.DataFrame({"place": np.array(list("nesw"))[place], "age": np.round(30 + 6 * y + rng.gamma(2, 5, 350))})
    frame["count"] = rng.poisson(1.5 + y * (place == 1))
    frame["size"] = rng.normal(y * (place > 1), 1)
    frame["flag"] = np.where(rng.random(350) < 0.3 + 0.2 * (y == 2), "yes", "no")
    return frame, y


MADE: dict[str, Made] = {
    "parity": _parity,
    "ring": _ring,
    "three bells a class": _two_bells,
    "clean, 60 rows": _clean,
    "spectra": _spectra,
    "20 classes": _many_classes,
    "speakers": _speakers,
    "gaps": _gaps,
    "skewed": _skewed,
    "100 × 200": _wide,
    "tree": _tree,
    "linear": _linear,
    "mixed columns": _mixed,
}
