# SPDX-License-Identifier: Apache-2.0
"""tq.explain_quantization_params: its figures are those of choose_quantization_params, for every rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tq

RULES = list(tq.rules()["parameters"])
ENDS = st.floats(-1e6, 1e6, width=32)


@pytest.mark.parametrize("rule", RULES)
@given(ends=st.tuples(ENDS, ENDS).map(sorted), dtype=st.sampled_from(["int8", "uint8", "int16", "int4"]))
def test_scale_and_zero_point_are_the_rules_own(rule, ends, dtype):
    chosen = tq.choose_quantization_params(*ends, dtype, rule=rule)
    e = tq.explain_quantization_params(*ends, dtype, rule=rule)
    assert (np.float32(e.scale), e.zero_point) == (chosen.scale, chosen.zero_point)
    assert e.representable == (e.scale * (e.low - e.zero_point), e.scale * (e.high - e.zero_point))
    assert min(e.clipped) >= 0 and e.widened[0] <= 0 <= e.widened[1]
    assert rule in str(e) and e.as_dict()["scale"] == e.scale and "<table" in e._repr_html_()


@pytest.mark.parametrize("rule", RULES)
@given(ends=st.tuples(ENDS, ENDS).map(sorted), power=st.integers(-14, 0))
def test_the_zero_point_is_the_candidate_that_was_taken_rounded_and_clamped(rule, ends, power):
    e = tq.explain_quantization_params(*(end * 10.0**power for end in ends), rule=rule)
    if e.nudge is not None:
        taken = {"min": e.from_min, "max": e.from_max}[e.taken]
        rounded = round(taken) if rule == "ai-edge-quantizer" else int(np.copysign(np.floor(abs(taken) + 0.5), taken))
        assert e.zero_point == min(max(rounded, e.low), e.high) and e.nudge == e.zero_point - taken


def test_a_range_that_a_rule_widens_is_shown_as_wide():
    e = tq.explain_quantization_params(0.0, 1e-8, rule="mlir")
    assert e.widened == (-5e-7, 5e-7) and e.clipped == (0, 0) and abs(e.nudge) <= 0.5


def test_both_candidates_of_the_zero_point_are_shown():
    e = tq.explain_quantization_params(-1.0, 3.0, "uint8")
    assert e.from_min == pytest.approx(63.75, abs=1e-4) and e.from_max == pytest.approx(63.75, abs=1e-4)
    assert e.from_min_error == pytest.approx(63.75, abs=1e-4) and e.from_max_error == pytest.approx(446.25, abs=1e-3)
    assert e.zero_point == 64 and e.nudge == pytest.approx(0.25, abs=1e-4)
    assert e.clipped[0] == 0 and e.clipped[1] == pytest.approx(0.25 * e.scale, rel=1e-3)


def test_symmetric_parameters_have_no_candidates():
    e = tq.explain_quantization_params(-1.0, 3.0, "int16", rule="tflite")
    assert e.symmetric and e.zero_point == 0 and e.from_min is e.from_max is e.nudge is None
    assert tq.explain_quantization_params(-1.0, 3.0, symmetric=True, narrow_range=True).low == -127


@pytest.mark.parametrize("ends", [(1.0, -1.0), (float("nan"), 1.0), (0.0, float("inf"))])
def test_ranges_that_are_none_are_refused(ends):
    with pytest.raises(ValueError, match="min is"):
        tq.explain_quantization_params(*ends)
