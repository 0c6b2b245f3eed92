"""Linear algebra: whitening, and the columns that make a matrix singular."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpstrf, dtrtri

from deciban.errors import shortlist
from deciban.kernels.choice import Array, one_thread

EPS = float(np.finfo(float).eps)


class Whitened(NamedTuple):
    """Inverse square roots and determinants of symmetric positive definite matrices M."""

    whitener: Array  # (m, D, D) upper triangular, whitener @ whitenerᵀ = M⁻¹
    log_det: Array  # (m,) log |M|
    pivot: Array  # (m,) smallest share of a column's variance that the columns before it do not explain


def whiten(matrices: Array) -> Whitened:
    """Square roots of the inverses, by Cholesky decomposition of the correlation matrices, which is free of units.

    A matrix that is not positive definite has pivot 0, and NaN in the rest. Which pivots count as singular is for the
    caller to decide.

    >>> root = whiten(np.array([[[4.0, 0.0], [0.0, 9.0]]]))
    >>> root.whitener[0].diagonal(), root.log_det.round(3)
    (array([0.5       , 0.33333333]), array([3.584]))
    """
    whitener, log_det, pivot = np.full_like(matrices, np.nan), np.full(len(matrices), np.nan), np.zeros(len(matrices))
    with one_thread(matrices.shape[-1]):
        for k, matrix in enumerate(matrices):
            variance = matrix.diagonal()
            if not (variance > 0).all():
                continue
            sd = np.sqrt(variance)
            try:
                lower = np.linalg.cholesky(matrix / sd / sd[:, None])
            except np.linalg.LinAlgError:
                continue
            left = lower.diagonal()
            # M = sd·L·Lᵀ·sd, so its inverse has the root sd⁻¹·L⁻ᵀ
            whitener[k] = dtrtri(lower, lower=1)[0].T / sd[:, None]
            log_det[k] = 2 * np.log(left * sd).sum()
            pivot[k] = left.min(initial=1.0) ** 2
    return Whitened(whitener, log_det, pivot)


def singular_columns(matrix: Array, tolerance: float) -> tuple[list[int], list[int]]:
    """Return the columns that do not vary, and columns that are linear combinations of the others.

    >>> x, y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 2.0])
    >>> table = np.stack([x, y, x - y, np.zeros(3)])
    >>> singular_columns(table @ table.T, 1e-12)
    ([3], [1])
    """
    variance = matrix.diagonal()
    constant = np.flatnonzero(~(variance > 0))
    varying = np.flatnonzero(variance > 0)
    if not len(varying):
        return constant.tolist(), []
    sd = np.sqrt(variance[varying])
    correlation = matrix[np.ix_(varying, varying)] / sd / sd[:, None]
    _, order, rank, _ = dpstrf(correlation, tol=tolerance)
    return constant.tolist(), sorted(varying[order[rank:] - 1].tolist())


def singular_reasons(constant: list[int], dependent: list[int]) -> list[str]:
    """Describe constant and linearly dependent columns, for error messages.

    >>> singular_reasons([3], [0, 1])
    ['column 3 does not vary', 'columns 0, 1 are linear combinations of the others']
    """
    reasons = []
    for columns, one, many in (
        (constant, "does not vary", "do not vary"),
        (dependent, "is a linear combination of the others", "are linear combinations of the others"),
    ):
        if columns:
            several = len(columns) > 1
            reasons.append(f"column{'s' * several} {shortlist(columns)} {many if several else one}")
    return reasons
