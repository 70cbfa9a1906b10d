# SPDX-License-Identifier: Apache-2.0
"""Second-order rounding of weights: sums over patches, Cholesky factors, GPTQ and COMQ, against NumPy."""

import hashlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import second_order
from repository import import_path

from tq import _core

# x, kernel, out, stride, dilation, before, groups
CONVOLUTIONS = [
    ((2, 9, 7, 24), (3, 3), (9, 7), (1, 1), (1, 1), (1, 1), 1),
    ((1, 9, 8, 10), (3, 2), (4, 4), (2, 2), (1, 1), (0, 0), 2),
    ((1, 12, 11, 6), (2, 3), (10, 11), (1, 1), (2, 2), (0, 2), 3),
    ((2, 8, 9, 11), (3, 3), (4, 5), (2, 2), (1, 1), (1, 1), 11),
    ((70, 1, 1, 37), (1, 1), (1, 1), (1, 1), (1, 1), (0, 0), 1),
    ((3, 6, 5, 9), (5, 5), (6, 5), (1, 1), (1, 1), (2, 2), 9),
]


def geometry(x, kernel, out, stride, dilation, before, groups, transposed=False):
    return (*x, *out, *kernel, *stride, *dilation, *before, groups, transposed)


def gathered(x, numbers, with_products=True):
    groups, length = numbers[14], numbers[6] * numbers[7] * (x.shape[3] // numbers[14])
    products = np.zeros((groups, length, length)) if with_products else None
    sums = np.zeros((groups, length))
    _core._hessian_add(x, numbers, products, sums, 2)
    return products, sums


def pairs(x, y, numbers, threads=2):
    groups, length = numbers[14], numbers[6] * numbers[7] * (x.shape[3] // numbers[14])
    own, cross, sums = *np.zeros((2, groups, length, length)), np.zeros((2, groups, length))
    _core._hessian_add_pair(x, y, numbers, own, cross, sums, threads)
    return own, cross, sums


def values(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_sums_are_those_of_all_patches(case):
    x, numbers = values(case[0]), geometry(*case)
    patches = second_order.patches(x.astype(float), *case[1:])
    products, sums = gathered(x, numbers)
    np.testing.assert_allclose(np.triu(products), np.triu(np.swapaxes(patches, 1, 2) @ patches), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(sums, patches.sum(1), rtol=1e-12, atol=1e-10)
    assert np.array_equal(gathered(x, numbers, with_products=False)[1], sums)


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_pairs_are_of_the_same_patches_of_two_inputs(case):
    x, y, numbers = values(case[0]), values(case[0], 1), geometry(*case)
    one, other = (second_order.patches(item.astype(float), *case[1:]) for item in (x, y))
    own, cross, sums = pairs(x, y, numbers)
    products, x_sums = gathered(x, numbers)
    np.testing.assert_allclose(np.triu(own), np.triu(products), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(cross, np.swapaxes(one, 1, 2) @ other, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(sums, [x_sums, other.sum(1)], rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("before", [(0, 0), (1, 0), (1, 1)])
def test_patches_of_a_transposed_convolution(before):
    x, kernel, stride = values((2, 4, 5, 3)), (3, 4), (2, 3)
    out = tuple((n - 1) * s + k - 2 * b for n, s, k, b in zip(x.shape[1:3], stride, kernel, before, strict=True))
    patches = second_order.transposed_patches(x.astype(float), kernel, out, stride, before)
    products, sums = gathered(x, geometry(x.shape, kernel, out, stride, (1, 1), before, 1, True))
    np.testing.assert_allclose(np.triu(products), np.triu(np.swapaxes(patches, 1, 2) @ patches), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(sums, patches.sum(1), rtol=1e-12, atol=1e-10)


def square(n, seed=0):
    """A positive definite matrix with a diagonal of many magnitudes."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(2 * n + 3, n)) * np.exp(random.normal(size=n))
    x[:, 1:] += 0.7 * x[:, :-1]
    h = x.T @ x / len(x)
    return h + np.eye(n) * 0.01 * np.diag(h).mean()


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130, 200])
def test_cholesky(n):
    h = square(n)
    upper = h.copy()
    assert _core._cholesky(upper, 2)
    np.testing.assert_allclose(np.triu(upper), np.linalg.cholesky(h).T, rtol=1e-9, atol=1e-12)
    assert np.array_equal(np.tril(upper, -1), np.tril(h, -1))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 70])
def test_a_matrix_that_is_not_positive_definite(bad, place):
    h = square(80)
    h[place, place] = bad
    assert not _core._cholesky(h, 1)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 7), (16, 64), (33, 130)])
def test_rows_times_a_matrix_and_its_inverse(rows, columns):
    random = np.random.default_rng(3)
    a, m, h = random.normal(size=(rows, columns)), random.normal(size=(columns, columns)), square(columns)
    upper = h.copy()
    assert _core._cholesky(upper, 2)
    turned = np.ascontiguousarray(m.T)
    np.testing.assert_allclose(_core._multiply_rows(a, turned, None, 2), a @ m, rtol=1e-12, atol=1e-12)
    expected = np.linalg.solve(h, (a @ m).T).T
    np.testing.assert_allclose(_core._multiply_rows(a, turned, upper, 2), expected, rtol=1e-8, atol=1e-10)


def rounded(method, w, h, scales, factors=(1.0,), sweeps=0, block=None, refit=False, limits=(-8, 7), threads=2):
    order = np.argsort(np.diag(h), kind="stable").astype(np.int64)
    moments = np.ascontiguousarray(h[np.ix_(order, order)])
    diagonal = np.diag(moments).copy()
    assert method != "gptq" or _core._cholesky(moments, threads)
    if method == "comq":
        moments[np.triu_indices(len(h))] = np.nan  # is not read
    block = block or len(h)
    table = np.ascontiguousarray(np.reshape(scales, (len(w), -1)).T, np.float32)
    arguments = (np.array(factors), sweeps, refit, *limits, threads)
    codes, made, errors = _core._round_rows(
        method, np.ascontiguousarray(w), order, moments, diagonal, table, block, False, *arguments
    )
    return codes, made.T, errors


def layer(rows, columns, seed=0):
    w = np.random.default_rng(seed + 1).normal(size=(rows, columns))
    return w, square(columns, seed), np.float32(np.abs(w).max(1) / 7)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 9), (16, 27), (17, 70), (40, 200)])
@pytest.mark.parametrize("limits", [(-127, 127), (-8, 7), (-2, 1)])
def test_gptq_gives_the_integers_of_the_paper(rows, columns, limits):
    w, h, _ = layer(rows, columns)
    scales = np.float32(np.abs(w).max(1) / limits[1])
    codes, made, errors = rounded("gptq", w, h, scales, limits=limits)
    expected = second_order.gptq(w, h, scales.astype(float)[:, None], *limits)
    assert np.array_equal(codes, expected)
    assert np.array_equal(made[:, 0], scales)
    v = codes * scales.astype(float)[:, None]
    np.testing.assert_allclose(errors, second_order.error(w, h, v), rtol=1e-8, atol=1e-12)
    nearest = np.clip(np.rint(w / scales[:, None]), *limits) * scales.astype(float)[:, None]
    assert errors.sum() <= second_order.error(w, h, nearest).sum() * 1.0001


def test_gptq_in_blocks():
    w, h, _ = layer(20, 96)
    scales = np.float32(np.abs(w.reshape(20, 3, 32)).max(2) / 7)
    codes, made, _ = rounded("gptq", w, h, scales, block=32)
    assert np.array_equal(codes, second_order.gptq(w, h, np.repeat(scales.astype(float), 32, axis=1), -8, 7))
    assert np.array_equal(made, scales)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 9), (17, 40), (5, 100)])
@pytest.mark.parametrize("sweeps", [1, 2, 4])
def test_comq_gives_the_integers_of_the_paper(rows, columns, sweeps):
    w, h, scales = layer(rows, columns)
    codes, made, errors = rounded("comq", w, h, scales, sweeps=sweeps, refit=True)
    expected, expected_scales = second_order.comq(w, h, scales, -8, 7, sweeps)
    assert np.array_equal(codes, expected)
    np.testing.assert_allclose(made[:, 0], expected_scales, rtol=1e-6)
    v = codes * made[:, 0].astype(float)[:, None]
    np.testing.assert_allclose(errors, second_order.error(w, h, v), rtol=1e-6, atol=1e-12)


def test_sweeps_behind_gptq_lose_nothing():
    w, h, scales = layer(33, 90)
    plain = rounded("gptq", w, h, scales)[2]
    swept = rounded("gptq", w, h, scales, sweeps=3)[2]
    assert (swept <= plain * (1 + 1e-9)).all() and swept.sum() < plain.sum()


def test_the_factor_of_least_error_is_taken():
    w, h, scales = layer(33, 50)
    factors = (1.0, 0.8, 0.6)
    each = [rounded("gptq", w, h, scales, (factor,)) for factor in factors]
    codes, made, errors = rounded("gptq", w, h, scales, factors)
    best = np.argmin([found[2] for found in each], axis=0)
    assert len(set(best)) > 1
    assert np.array_equal(errors, np.min([found[2] for found in each], axis=0))
    assert np.array_equal(codes, np.stack([each[b][0][row] for row, b in enumerate(best)]))
    assert np.array_equal(made[:, 0], np.float32(scales.astype(float) * np.array(factors)[best]))


@pytest.mark.parametrize("method", ["gptq", "comq"])
def test_with_the_identity_each_weight_is_rounded_to_the_nearest(method):
    w, _, scales = layer(20, 33)
    codes, _, _ = rounded(method, w, np.eye(33) * 3, scales, sweeps=2)
    assert np.array_equal(codes, np.clip(np.rint(w / scales.astype(float)[:, None]), -8, 7))


def digest(threads):
    """A digest of all results, by the instruction sets that TQ_DISABLE_CPU leaves."""
    made = hashlib.sha256()
    for case in CONVOLUTIONS:
        x, numbers = values(case[0]), geometry(*case)
        groups, length = numbers[14], numbers[6] * numbers[7] * (x.shape[3] // numbers[14])
        products, sums = np.zeros((groups, length, length)), np.zeros((groups, length))
        _core._hessian_add(x, numbers, products, sums, threads)
        made.update(products.tobytes() + sums.tobytes())
        made.update(b"".join(array.tobytes() for array in pairs(x, values(case[0], 1), numbers, threads)))
    w, h, scales = layer(50, 150)
    upper = h.copy()
    _core._cholesky(upper, threads)
    made.update(upper.tobytes())
    made.update(_core._multiply_rows(w, h, upper, threads).tobytes())
    for method in ("gptq", "comq"):
        found = rounded(method, w, h, scales, (1.0, 0.9), sweeps=2, refit=True, threads=threads)
        for array in found:
            made.update(array.tobytes())
    return made.hexdigest()


@pytest.mark.parametrize("disabled", ["", "avx512", "avx2"])
def test_every_instruction_set_and_number_of_threads_gives_the_same_bits(disabled):
    code = "import sys; sys.path[:0] = sys.argv[1:]; import test_second_order_rounding as t; print(t.digest(3))"
    environment = {**os.environ, "TQ_DISABLE_CPU": disabled}
    command = [sys.executable, "-c", code, *import_path(__file__)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == digest(1), done.stderr


def test_arrays_that_do_not_fit():
    w, h, scales = layer(4, 6)
    order = np.arange(6)
    good = ["gptq", w, order, h, np.diag(h).copy(), scales[None], 6, False, np.ones(1), 0, False, -8, 7, 1]
    _core._round_rows(*good)
    wrong = {
        0: ["gpqt", 3],
        1: [w[:, :5], w.astype(np.float32), w.T],
        2: [np.zeros(6, int), order[:5], order - 1],
        3: [None, h[:5], h.tolist()],
        4: [None, np.diag(h), np.ones(5), h],
        5: [scales[None, :3], scales[None].astype(float)],
        6: [0, 4, -1],
        8: [np.ones(0)],
        9: [-1],
        11: [-129, 8],
        12: [128],
    }
    for place, items in wrong.items():
        for item in items:
            with pytest.raises((ValueError, TypeError)):
                _core._round_rows(*good[:place], item, *good[place + 1 :])
    for item in ([w[:, :5], h, h], [w, h[:5], h], [w, h, h[:5]], [w.astype(np.float32), h, h], [w, h, 3]):
        with pytest.raises(ValueError):
            _core._multiply_rows(*item, 1)
    frozen = h.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError):
        _core._cholesky(frozen, 1)
    x, numbers = values((1, 4, 4, 2)), list(geometry((1, 4, 4, 2), (3, 3), (4, 4), (1, 1), (1, 1), (1, 1), 1))
    for place, item in ((0, 2), (3, 3), (14, 0), (14, 3), (8, 0), (6, 1 << 40), (6, 2)):
        changed = [*numbers[:place], item, *numbers[place + 1 :]]
        with pytest.raises(ValueError):
            _core._hessian_add(x, tuple(changed), np.zeros((1, 18, 18)), np.zeros((1, 18)), 1)
        with pytest.raises(ValueError):
            _core._hessian_add_pair(x, x, tuple(changed), *np.zeros((2, 1, 18, 18)), np.zeros((2, 1, 18)), 1)
    good = [x, x, tuple(numbers), *np.zeros((2, 1, 18, 18)), np.zeros((2, 1, 18)), 1]
    _core._hessian_add_pair(*good)
    frozen = np.zeros((1, 18, 18))
    frozen.flags.writeable = False
    wrong = {
        0: [x[:, :3], x.astype(float), None],
        1: [x[:, :3], x.astype(float), np.swapaxes(x, 1, 2), None],
        2: [numbers, tuple(numbers[:-1])],
        3: [np.zeros((1, 18, 17)), np.zeros((1, 18, 18), np.float32), frozen, None],
        4: [np.zeros((1, 17, 18)), frozen, None],
        5: [np.zeros((1, 18)), np.zeros((2, 17)), None],
        6: [-1, "2"],
    }
    for place, items in wrong.items():
        for item in items:
            with pytest.raises((ValueError, TypeError)):
                _core._hessian_add_pair(*good[:place], item, *good[place + 1 :])


@pytest.mark.parametrize("work", ["sums", "pairs", "factor", "rows", "products"])
def test_ctrl_c_is_heard(work):
    """Each call would take many seconds."""
    n = 3000
    x, h = values((1, 60, 60, 400)), np.eye(n) + 0.01
    weights, order, scales = np.ones((2000, n)), np.arange(n), np.ones((1, 2000), np.float32)
    calls = {
        "products": lambda: [_core._multiply_rows(weights, h, h, 1) for _ in range(5)],
        "sums": lambda: gathered(x, geometry(x.shape, (3, 3), (60, 60), (1, 1), (1, 1), (1, 1), 1)),
        "pairs": lambda: pairs(x, x, geometry(x.shape, (3, 3), (60, 60), (1, 1), (1, 1), (1, 1), 1)),
        "factor": lambda: [_core._cholesky(h.copy(), 1) for _ in range(50)],
        "rows": lambda: _core._round_rows(
            "comq", weights, order, h, np.ones(n), scales, n, False, np.ones(50), 9, True, -8, 7, 2
        ),
    }

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begin = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            calls[work]()
        assert time.perf_counter() - begin < 10
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
