# SPDX-License-Identifier: Apache-2.0
"""get_tensor_details and its kin equal LiteRT's, key by key and type by type, wherever LiteRT answers.

What tq adds, `min`, `max`, `range_min` and `range_max`, is held against the file, read through the upstream schema,
and against NumPy.
"""

import struct

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import oracle
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from models import build_model, make_model, pack, tensor

import tq

ADDED = ("min", "max", "range_min", "range_max")
# LiteRT leaves tensors of these types out of its list, since NumPy has no builtin type for them.
SKIPPED_BY_LITERT = {schema.TensorType.BFLOAT16}
RANGES = {
    "INT8": (-128, 127),
    "UINT8": (0, 255),
    "INT16": (-32768, 32767),
    "UINT16": (0, 65535),
    "INT32": (-(2**31), 2**31 - 1),
    "UINT32": (0, 2**32 - 1),
    "INT64": (-(2**63), 2**63 - 1),
    "UINT64": (0, 2**64 - 1),
    "INT4": (-8, 7),
    "UINT4": (0, 15),
    "INT2": (-2, 1),
}


# ---- equality down to types and bits ----


def assert_same(ours, theirs, place):
    """Equal type, value and, of floats, bits; of dicts, keys in the same order."""
    assert type(ours) is type(theirs), (place, ours, theirs)
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), place
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{place}[{key!r}]")
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), place
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{place}[{i}]")
    elif isinstance(theirs, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), (place, ours, theirs)
        assert ours.tobytes() == theirs.tobytes(), (place, ours, theirs)
    elif isinstance(theirs, float):
        assert struct.pack("<d", ours) == struct.pack("<d", theirs), (place, ours, theirs)
    else:
        assert ours == theirs, (place, ours, theirs)


def without_added(details):
    """A tensor's dict less tq's own keys, after checking that they come last and are float32 arrays."""
    parameters = details["quantization_parameters"]
    assert tuple(parameters)[-4:] == ADDED
    for key in ADDED:
        assert isinstance(parameters[key], np.ndarray)
        assert parameters[key].dtype == np.float32, (key, parameters)
    rest = {key: value for key, value in parameters.items() if key not in ADDED}
    return {**details, "quantization_parameters": rest}


def assert_details_equal(data, answer, place):
    """All of a model's details against LiteRT's answer for it."""
    model = tq.Model(data)
    assert len(model.subgraphs) == len(answer["tensors"])
    for g, theirs in enumerate(answer["tensors"]):
        ours = {item["index"]: without_added(item) for item in model.get_tensor_details(g)}
        assert list(ours) == list(range(len(model.subgraphs[g].tensors)))
        for item in theirs:
            assert_same(ours.pop(item["index"]), item, f"{place}: subgraph {g}, tensor {item['index']}")
        for index in ours:
            assert model.subgraphs[g].tensors[index].type in SKIPPED_BY_LITERT, (place, g, index)
    for which in ("inputs", "outputs"):
        if not isinstance(answer[which], oracle.Refusal):
            ours = [without_added(item) for item in getattr(model, f"get_{which[:-1]}_details")()]
            assert_same(ours, answer[which], f"{place}: {which}")


# ---- what tq adds ----


def stored_quantization(data):
    """[[QuantizationParameters or None of each tensor] of each subgraph], by the upstream schema."""
    model = schema.Model.GetRootAs(data, 0)
    graphs = [model.Subgraphs(g) for g in range(model.SubgraphsLength())]
    return [[graph.Tensors(t) for t in range(graph.TensorsLength())] for graph in graphs]


TYPE_NAMES = {value: name for name, value in vars(schema.TensorType).items() if name.isupper()}


def as_float32(values):
    return np.zeros(0, np.float32) if isinstance(values, int) else np.array(values, np.float32)


def expected_range(tensor, q):
    """scale * (lowest - zero_point) and scale * (highest - zero_point), one a scale.

    The difference is exact, then a double; the product is rounded once to a double and once to float32.
    """
    limits = RANGES.get(TYPE_NAMES.get(tensor.Type()))
    scales = [] if isinstance(q.ScaleAsNumpy(), int) else q.ScaleAsNumpy().astype(np.float64)
    zeros = [] if isinstance(q.ZeroPointAsNumpy(), int) else q.ZeroPointAsNumpy().tolist()
    if limits is None or not len(scales) or len(zeros) not in (1, len(scales)):
        return None
    zeros = zeros * len(scales) if len(zeros) == 1 else zeros
    differences = [np.array([float(limit - zero) for zero in zeros]) for limit in limits]
    with np.errstate(over="ignore", invalid="ignore"):
        return [(scales * difference).astype(np.float32) for difference in differences]


def assert_added_keys(data, place):
    model = tq.Model(data)
    count = 0
    for g, tensors in enumerate(stored_quantization(data)):
        for item, details in zip(tensors, model.get_tensor_details(g), strict=True):
            parameters, q, where = details["quantization_parameters"], item.Quantization(), (place, g, details["index"])
            if q is None:
                assert all(parameters[key].size == 0 for key in ADDED), where
                continue
            assert parameters["min"].tobytes() == as_float32(q.MinAsNumpy()).tobytes(), where
            assert parameters["max"].tobytes() == as_float32(q.MaxAsNumpy()).tobytes(), where
            expected = expected_range(item, q)
            if expected is not None:
                np.testing.assert_array_equal(parameters["range_min"], expected[0], err_msg=str(where))
                np.testing.assert_array_equal(parameters["range_max"], expected[1], err_msg=str(where))
                count += 1
            elif q.Details() is None and isinstance(q.ScaleAsNumpy(), int):
                assert parameters["range_min"].size == parameters["range_max"].size == 0, where
    return count


# ---- made models ----

# LiteRT refuses these: for the reasons, see the zoo.
REFUSED = {"stablehlo", "plain", "trailing", "future", "odd_indices", "bare", "no_zero_points"}


@pytest.fixture(scope="module")
def answers():
    models = zoo.MODELS
    return dict(zip(models, oracle.ask("details", models.values()), strict=True))


@pytest.mark.parametrize("name", [make.__name__ for make in zoo.MAKERS if make.__name__ not in REFUSED])
def test_made_models(name, answers):
    assert isinstance(answers[name], dict), answers[name]
    assert_details_equal(zoo.MODELS[name], answers[name], name)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_models_that_litert_refuses(name, answers):
    assert isinstance(answers[name], oracle.Refusal)
    model = tq.Model(zoo.MODELS[name])
    for g in range(len(model.subgraphs)):
        assert len(model.get_tensor_details(g)) == len(model.subgraphs[g].tensors)


@pytest.mark.parametrize("name", [make.__name__ for make in zoo.MAKERS])
def test_added_keys_of_made_models(name):
    assert_added_keys(zoo.MODELS[name], name)


def details_of(*args, **kwargs):
    (details,) = tq.Model(build_model([tensor(*args, **kwargs)])).get_tensor_details()
    return details


def test_range_is_not_filled_from_the_stored_one():
    """A file with min -1, max 1, scale 0.1 and zero point 3 says -1 and 1, and can represent more."""
    parameters = details_of("t", [4], "INT8", scale=0.1, zero_point=3, min=-1, max=1)["quantization_parameters"]
    assert parameters["min"].tolist() == [-1.0]
    assert parameters["max"].tolist() == [1.0]
    scale = float(np.float32(0.1))
    assert parameters["range_min"].tolist() == [np.float32(scale * -131)]
    assert parameters["range_max"].tolist() == [np.float32(scale * 124)]


def test_stored_range_is_not_filled_from_the_scale():
    parameters = details_of("t", [4], "INT8", scale=0.1, zero_point=3)["quantization_parameters"]
    assert parameters["min"].size == parameters["max"].size == 0


def test_bfloat16_is_answered():
    import ml_dtypes

    details = tq.Model(zoo.MODELS["bfloat16"]).get_tensor_details()
    assert [item["index"] for item in details] == [0, 1]
    assert details[0]["dtype"] is ml_dtypes.bfloat16


def test_a_subgraph_out_of_range():
    model = tq.Model(zoo.MODELS["subgraphs"])
    for index in (3, -4, 2**31, 2**70):
        with pytest.raises((IndexError, ValueError, OverflowError)):
            model.get_tensor_details(index)


def test_inputs_and_outputs_of_every_subgraph():
    model = tq.Model(zoo.MODELS["subgraphs"])
    for g in range(3):
        graph = model.subgraphs[g]
        assert [d["index"] for d in model.get_input_details(g)] == list(graph.input_indices)
        assert [d["index"] for d in model.get_output_details(g)] == list(graph.output_indices)


def test_arrays_outlive_the_model_and_are_nobody_elses():
    """What a caller writes into a returned array changes neither the file nor the next answer."""
    data = bytes(zoo.MODELS["per_axis"])
    first = tq.Model(data).get_tensor_details()
    for item in first:
        for value in [item["shape"], *item["quantization_parameters"].values()]:
            if isinstance(value, np.ndarray) and value.flags.writeable and value.size:
                value[...] = 77
    assert data == zoo.MODELS["per_axis"]
    assert_added_keys(data, "again")


# ---- random models ----

SCALES = st.floats(2**-20, 4, width=32) | st.sampled_from([0.0, -1.0, float("nan"), float("inf"), 1e-45, 3e38])
ZEROS = st.integers(-130, 260) | st.sampled_from([2**31 - 1, 2**31, -(2**31) - 1, 2**33 + 5, -(2**63), 2**63 - 1])
TYPES = st.sampled_from([type.name for type in tq.TensorType])


@st.composite
def tensors(draw):
    """Mostly tensors that LiteRT takes: it rejects a whole model for one bad tensor."""
    shape = draw(st.lists(st.integers(1, 5), max_size=5))
    arguments = {}
    kind = draw(st.sampled_from(["none", "per-tensor", "per-axis", "range", "empty"]))
    count = 1
    if kind == "per-axis" and shape:
        axis = arguments["quantized_dimension"] = draw(st.integers(0, len(shape) - 1))
        count = shape[axis]
    if kind in ("per-tensor", "per-axis"):
        arguments["scale"] = draw(st.lists(SCALES, min_size=count, max_size=count))
        arguments["zero_point"] = draw(st.lists(ZEROS, min_size=count, max_size=count))
    if kind == "empty":
        arguments |= {"scale": [], "zero_point": draw(st.lists(ZEROS, max_size=2))}
        arguments["quantized_dimension"] = draw(st.integers(-2, 9))
    if kind in ("range", "per-tensor", "per-axis") and draw(st.booleans()):
        for key in ("min", "max"):
            arguments[key] = draw(st.lists(st.floats(width=32), max_size=count + 1))
    signature = draw(st.none() | st.just([]) | st.just([-1] * len(shape)) | st.just([-1, *shape[1:]]))
    type = draw(TYPES)
    content = None
    if type in zoo.SIX and draw(st.booleans()):
        count = int(np.prod(shape))
        content = bytes((count * zoo.SIX[type] + 5) // 6 + draw(st.integers(0, 3)))
    name = draw(st.none() | st.text(max_size=8).filter(lambda text: "\0" not in text))
    arguments["is_variable"] = content is None and draw(st.booleans())
    arguments["has_rank"] = draw(st.booleans())
    return tensor(name, shape, type, content, shape_signature=signature, **arguments)


class Asker:
    """One LiteRT process for all of a test's examples."""

    def __init__(self):
        self.questions = []
        self.answers = oracle.ask("details", self)

    def __iter__(self):
        return self

    def __next__(self):
        return self.questions.pop()

    def ask(self, data):
        self.questions.append(data)
        return next(self.answers)


@pytest.fixture(scope="module")
def litert():
    return Asker()


@settings(deadline=None, max_examples=300)
@given(items=st.lists(tensors(), min_size=1, max_size=6), data=st.data())
def test_random_models(litert, items, data):
    indices = st.lists(st.integers(0, len(items) - 1), max_size=3)
    made = pack(make_model(items, inputs=data.draw(indices), outputs=data.draw(indices)))
    answer = litert.ask(made)
    if isinstance(answer, dict):
        assert_details_equal(made, answer, "random")
    else:
        tq.Model(made).get_tensor_details()
    assert_added_keys(made, "random")


# ---- real models ----


@pytest.mark.corpus
def test_corpus(corpus):
    refused = []
    for path, answer in zip(corpus, oracle.ask("details", corpus), strict=True):
        if isinstance(answer, dict):
            assert_details_equal(path, answer, path)
        else:
            refused.append(path)
            model = tq.Model(path)
            assert sum(len(model.get_tensor_details(g)) for g in range(len(model.subgraphs)))
    assert len(refused) <= max(1, len(corpus) // 100), refused


@pytest.mark.corpus
def test_added_keys_of_the_corpus(corpus):
    assert sum(assert_added_keys(path.read_bytes(), path) for path in corpus) > 1000


@pytest.mark.corpus
def test_person_detect_is_answered(corpus):
    """tflite-micro's own model, whose quantized_dimension LiteRT refuses."""
    paths = [path for path in corpus if path.name.endswith("person_detect.tflite")]
    if not paths:
        pytest.skip("this corpus has no person_detect.tflite")
    for path in paths:
        details = tq.Model(path).get_tensor_details()
        assert len(details) > 80
        assert any(item["quantization_parameters"]["scales"].size > 1 for item in details)
