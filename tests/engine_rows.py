"""Rows in files, for tests of engines: more than the first 65,536 rows, in fragments of a few thousand."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deciban.engines.plan import Serial, fit
from deciban.engines.tasks import Files, parts_of
from deciban.read.files import open_source

ROWS = 70_000


def columns(n: int, seed: int = 0, classes=("high", "low")) -> pa.Table:
    rng = np.random.default_rng(seed)
    code = rng.integers(0, len(classes), n)
    size = rng.normal(code, 1.0)
    size[rng.random(n) < 0.01] = np.nan
    return pa.table(
        {
            "size": pa.array(size, from_pandas=True),
            "colour": rng.choice(["red", "white", "blue"], n),
            "calls": rng.poisson(2.0 + code),
            "label": np.array(classes)[code],
        }
    )


def groups(n: int) -> pa.Table:
    """Two classes of two groups each; the groups of the rows after the first 65,536 are elsewhere."""
    rng = np.random.default_rng(3)
    code, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
    x = rng.normal(4.0 * group + (np.arange(n) >= 65_536), 1.0)
    colours = np.array(["red", "white", "blue"])[(code + rng.integers(0, 2, n)) % 3]
    labels = np.array(["high", "low"])[code]
    return pa.table({"x": x, "y": rng.normal(code * group, 1.0), "colour": colours, "label": labels})


def documents(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2, n)
    words = np.array([f"w{at}" for at in range(5_000)])
    at = (rng.zipf(1.5, (n, 4)) + 7 * code[:, None]) % len(words)
    return pa.table({"text": [" ".join(row) for row in words[at]], "label": np.array(["a", "b"])[code]})


def write(folder, table: pa.Table, files: int, row_group: int = 4_000) -> str:
    """Write a table in several Parquet files; return their pattern."""
    step = -(-len(table) // files)
    for at in range(files):
        pq.write_table(table.slice(at * step, step), folder / f"{at:03}.parquet", row_group_size=row_group)
    return f"{folder}/*.parquet"


def planned(clf, pattern: str, engine=None, size: int = 1):
    """Fit a classifier by the plan; a fragment for each row group."""
    source = open_source(pattern)
    given = Files(source, "label", parts_of(source, size))
    predictor, _ = fit(clf._request(None), given, engine or Serial())
    return predictor


def sums(stats, path=()):
    """Yield the name and the array of every sum, also of nested ones."""
    for field, values in stats.items():
        parts = values.items() if isinstance(values, dict) else [((), values)]
        for name, part in parts:
            here = (*path, field.name, name)
            if hasattr(part, "items") and hasattr(part, "labels"):
                yield from sums(part, here)
            elif part is not None:
                yield here, np.asarray(part), field.metadata["kind"]


def assert_equal_models(one, two, gaussian=("first", "second")):
    """Names equal; counts equal to the bit; sums of a Gaussian to 1e-12 of the largest."""
    assert one.classes == two.classes
    assert one.family == two.family
    pairs = list(zip(sums(one.stats), sums(two.stats), strict=True))
    assert pairs
    for (name, a, _), (other, b, _) in pairs:
        assert name == other
        if name[-2] in gaussian:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(a).max(initial=1.0))
        else:
            np.testing.assert_array_equal(a, b, err_msg=str(name))


def assert_close_sums(one, two):
    """All sums of two statistics equal up to rounding."""
    pairs = list(zip(sums(one), sums(two), strict=True))
    assert pairs
    for (name, a, _), (other, b, _) in pairs:
        assert name == other
        np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-8 * np.abs(a).max(initial=1.0), err_msg=str(name))
