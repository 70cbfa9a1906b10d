# SPDX-License-Identifier: Apache-2.0
"""Narrow tensors before operators whose inputs and outputs share parameters: a QUANTIZE where others read them."""

import numpy as np
import pytest
from test_quantize_static import check, draws, quantized

import tq

SHAPE = (1, 4, 4, 8)


class Net:
    """A model under construction, whose input lies between -1 and 1.  Channels are the last dimension."""

    def __init__(self):
        self.builder = tq.ModelBuilder()
        self.x = self.builder.input("x", SHAPE)

    def times(self, name, source, factor):
        """A MUL, whose range is `factor` times its input's."""
        made = self.builder.tensor(name, source.shape)
        self.builder.operator("MUL", [source, self.builder.constant(f"{name}_factor", np.float32(factor))], [made])
        return made

    def joined(self, name, *sources, operator="CONCATENATION"):
        grows = operator == "CONCATENATION"
        channels = sum(source.shape[-1] for source in sources) if grows else sources[0].shape[-1]
        made = self.builder.tensor(name, (*SHAPE[:-1], channels))
        self.builder.operator(operator, list(sources), [made], **({"axis": 3} if grows else {}))
        return made

    def done(self, *outputs):
        self.builder.output(*outputs)
        return self.builder.to_bytes()


def chain(*factors):
    """x, then of each factor [before, before * factor]: a DenseNet's block.  The output reads the last."""
    net = Net()
    found = net.x
    for number, factor in enumerate(factors):
        found = net.joined(f"joined{number}", found, net.times(f"wide{number}", found, factor))
    return net.done(net.times("y", found, 0.25))


def one(factor, operator="CONCATENATION"):
    net = Net()
    return net.done(net.times("y", net.joined("both", net.x, net.times("wide", net.x, factor), operator=operator), 1))


def requantized(data):
    """{name of a tensor that a QUANTIZE of integers reads: that of its result}, and the widths of all ranges."""
    opened = tq.Model(data)
    rows = [op for op in opened.operators if op.name == "QUANTIZE" and op.inputs[0].type.name != "FLOAT32"]
    widths = {t.name: 255 * float(t.quantization.scale[0]) for t in opened.tensors if len(t.quantization.scale)}
    return {op.inputs[0].name: op.outputs[0].name for op in rows}, widths


@pytest.mark.parametrize("recipe", ["int8", "uint8"])
def test_each_narrow_tensor_of_a_chain_keeps_its_range(recipe):
    model = chain(4, 4, 4)
    data = quantized(model, recipe)
    found, widths = requantized(data)
    assert list(found) == ["x_int8", "joined0", "joined1"]
    for name, width in {"x_int8": 2, "joined0": 8, "joined1": 32, "joined2": 128}.items():
        assert widths[name] == pytest.approx(width, rel=0.01)
    for source, target in zip(found, ["joined0", "joined1", "joined2"], strict=True):
        assert widths[found[source]] == widths[target]
    check(model, data, least=30)


def test_a_chain_with_one_range_for_all_is_far_from_the_float_model():
    """What QUANTIZE is for: the caller's range for one of them makes all share it."""
    model = chain(4, 4, 4)
    data = quantized(model, overrides={"joined2": (-64.0, 64.0), "joined1": (-64.0, 64.0), "joined0": (-64.0, 64.0)})
    assert not requantized(data)[0]
    with pytest.raises(AssertionError):
        check(model, data, least=30)


@pytest.mark.parametrize(("factor", "expected"), [(1.9, []), (2.1, ["x_int8"])])
def test_half_of_the_common_range_is_narrow(factor, expected):
    model = one(factor)
    data = quantized(model)
    assert list(requantized(data)[0]) == expected
    check(model, data, least=30)


@pytest.mark.parametrize("operator", ["MAXIMUM", "MINIMUM"])
def test_a_result_that_is_narrower_than_what_it_is_of_keeps_its_range(operator):
    """The result lies on one side of 0."""
    model = one(-8.0, operator)
    data = quantized(model)
    found, widths = requantized(data)
    assert sorted(found) == ["wide", "x_int8"]
    for name, width in {"x_int8": 2, "wide": 16, "both": 8}.items():
        assert widths[name] == pytest.approx(width, rel=0.01)
    check(model, data, least=30)


@pytest.mark.parametrize("recipe", ["int16x8", "int16x4"])
def test_int16_has_steps_enough_for_one_range(recipe):
    assert not requantized(quantized(one(8.0), recipe))[0]


def test_a_narrow_tensor_that_the_operator_alone_reads_shares_its_parameters():
    net = Net()
    narrow, wide = net.times("narrow", net.x, 0.01), net.times("wide", net.x, 8)
    model = net.done(net.times("y", net.joined("both", narrow, wide), 1))
    found, widths = requantized(quantized(model))
    assert not found and widths["narrow"] == widths["wide"] == widths["both"]


def test_an_output_of_the_model_is_read():
    net = Net()
    narrow, wide = net.times("narrow", net.x, 0.01), net.times("wide", net.x, 8)
    model = net.done(net.joined("both", narrow, wide), narrow)
    found, _ = requantized(quantized(model))
    assert list(found) == ["narrow_int8"]


def test_a_pool_and_its_input_are_narrow_together():
    """MAX_POOL_2D keeps its input's parameters."""
    net = Net()
    pooled = net.builder.tensor("pooled", SHAPE)
    net.builder.operator(
        "MAX_POOL_2D", [net.x], [pooled], stride_w=1, stride_h=1, filter_width=3, filter_height=3, padding="SAME"
    )
    model = net.done(net.times("y", net.joined("both", pooled, net.times("wide", net.x, 8)), 1))
    data = quantized(model)
    found, widths = requantized(data)
    assert list(found) == ["pooled"] and widths["pooled"] == widths["x_int8"]
    check(model, data, least=30)


def test_operators_that_share_parameters_share_a_quantize():
    net = Net()
    wide = net.times("wide", net.x, 8)
    first, second = net.joined("first", net.x, wide), net.joined("second", wide, net.x)
    model = net.done(net.times("y", net.joined("both", first, second), 1))
    data = quantized(model)
    assert [op.name for op in tq.Model(data).operators].count("QUANTIZE") == 2  # of the input, and of x
    check(model, data, least=30)


def test_a_range_that_the_caller_gives_is_shared():
    data = quantized(one(8.0), overrides={"both": (-8.0, 8.0)})
    assert not requantized(data)[0]


def test_the_plan_names_the_conversion():
    model = one(8.0)
    rows = tq.plan_quantization(model, "int8", calibration=draws(model)).conversions
    assert [(row.operator, row.tensor) for row in rows] == [("QUANTIZE", "x"), ("DEQUANTIZE", "y"), ("QUANTIZE", "x")]


@pytest.mark.parametrize("options", [{"effort": "better"}, {"weight_rounding": "gptq"}, {"bias_correction": True}])
def test_passes_over_samples_take_such_a_model(options):
    net = Net()
    weights = np.random.default_rng(1).standard_normal((8, 1, 1, 8)).astype(np.float32)
    wide = net.builder.tensor("wide", SHAPE)
    constants = net.builder.constant("w", 3 * weights), net.builder.constant("b", np.zeros(8, np.float32))
    net.builder.operator("CONV_2D", [net.x, *constants], [wide], stride_w=1, stride_h=1)
    model = net.done(net.times("y", net.joined("both", net.x, wide), 1))
    data = tq.quantize_model(model, "int8", calibration=draws(model), **options)
    assert list(requantized(data)[0]) == ["x_int8"]
    check(model, data, least=30)


@pytest.mark.parametrize("seed", range(24))
def test_random_nets_of_joining_operators_run_alike_everywhere(seed):
    rng, net = np.random.default_rng(seed), Net()
    tensors = [net.x]
    for number in range(8):
        source = tensors[rng.integers(len(tensors))]
        tensors.append(net.times(f"t{number}", source, float(rng.choice([-1, 1]) * 2 ** rng.uniform(-2, 3))))
        same = [t for t in tensors if t.shape == source.shape]
        operator = str(rng.choice(["CONCATENATION", "CONCATENATION", "MAXIMUM", "MINIMUM"]))
        chosen = [same[i] for i in rng.integers(len(same), size=2)]
        tensors.append(net.joined(f"j{number}", *chosen, operator=operator))
    model = net.done(net.times("y", tensors[-1], 1.0))
    check(model, quantized(model), least=20)


def test_fake_quants_of_both_parameters_give_the_same_quantizes_again():
    first = quantized(chain(4, 4, 4))
    again = tq.quantize_model(tq.dequantize_model(first, fake_quant=True), "int8")
    assert [op.name for op in tq.Model(again).operators] == [op.name for op in tq.Model(first).operators]


def test_ranges_that_the_file_stores_count_as_calibrated_ones_do():
    model = one(8.0)
    with tq.edit(model) as editor:
        for tensor in editor.tensors:
            if not tensor.is_constant:
                width = 1.0 if tensor.name == "x" else 8.0
                tensor.quantization = {"min": [-width], "max": [width]}
        stored = editor.to_bytes()
    assert list(requantized(tq.quantize_model(stored, "int8"))[0]) == ["x_int8"]
