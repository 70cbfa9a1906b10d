# SPDX-License-Identifier: Apache-2.0
"""GPTQ and COMQ as their papers state them, in NumPy, and what weights meet, by slicing: oracles of tests."""

import numpy as np


def gptq(w, h, s, least, most):
    """Frantar et al. 2022, algorithm 1 with its order by activation: columns by falling diagonal of H, errors handed on
    through the Cholesky factor of the inverse.  s: [rows, K] or [rows, 1].  Returns integers."""
    order = np.argsort(np.diag(h), kind="stable")[::-1]
    h, w = h[np.ix_(order, order)], w[:, order].astype(float)
    s = np.broadcast_to(s, w.shape)[:, order]
    upper = np.linalg.cholesky(np.linalg.inv(h)).T
    q = np.zeros(w.shape)
    for k in range(len(h)):
        q[:, k] = np.clip(np.rint(w[:, k] / s[:, k]), least, most)
        error = (w[:, k] - q[:, k] * s[:, k]) / upper[k, k]
        w[:, k:] -= np.outer(error, upper[k, k:])
    out = np.empty_like(q)
    out[:, order] = q
    return out


def comq(w, h, s, least, most, sweeps):
    """Zhang et al. 2024: each weight in turn the best integer beside the others, and the best scale for integers.
    s: [rows].  Returns integers and scales."""
    v, s = w.astype(float).copy(), np.float32(s).astype(float)
    for sweep in range(sweeps):
        if sweep:
            best = np.einsum("rk,kl,rl->r", v, h, w) / np.einsum("rk,kl,rl->r", v, h, v)
            new = np.float32(s * best).astype(float)
            v, s = v * (new / s)[:, None], new
        for k in np.argsort(np.diag(h), kind="stable")[::-1]:
            t = v[:, k] + (w - v) @ h[:, k] / h[k, k]
            v[:, k] = np.clip(np.rint(t / s), least, most) * s
    return np.rint(v / s[:, None]), s


def error(w, h, v):
    """(w - v) H (w - v) of each row."""
    return np.einsum("rk,kl,rl->r", w - v, h, w - v)


def patches(x, kernel, out, stride, dilation, before, groups):
    """[groups, positions, K]: what a filter meets, by padding and slicing."""
    n, _, _, c = x.shape
    most = [(out[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 for i in range(2)]
    padded = np.zeros((n, *(max(most[i], before[i] + x.shape[1 + i]) for i in range(2)), c))
    padded[:, before[0] : before[0] + x.shape[1], before[1] : before[1] + x.shape[2]] = x
    cuts = [
        [slice(k * dilation[i], k * dilation[i] + (out[i] - 1) * stride[i] + 1, stride[i]) for k in range(kernel[i])]
        for i in range(2)
    ]
    taps = np.stack([padded[:, rows, columns] for rows in cuts[0] for columns in cuts[1]], 3)
    taps = taps.reshape(-1, kernel[0] * kernel[1], groups, c // groups)
    return taps.transpose(2, 0, 1, 3).reshape(groups, len(taps), -1)


def transposed_patches(x, kernel, out, stride, before):
    """The same of a TRANSPOSE_CONV: each input value is written, tap by tap, to where the tap adds it."""
    n, h, w, c = x.shape
    taps = np.zeros((n, *out, *kernel, c))
    for y in range(h):
        for z in range(w):
            for i in range(kernel[0]):
                for j in range(kernel[1]):
                    a, b = y * stride[0] + i - before[0], z * stride[1] + j - before[1]
                    if 0 <= a < out[0] and 0 <= b < out[1]:
                        taps[:, a, b, i, j] = x[:, y, z]
    return taps.reshape(1, -1, kernel[0] * kernel[1] * c)
