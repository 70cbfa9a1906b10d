# SPDX-License-Identifier: Apache-2.0
"""Forms of data sets: functions, labels, folders of pictures; the same set for each function that takes samples."""

import flatbuffers
import numpy as np
import pytest
from labelled import IMAGES, SHAPE, TRUE, classifier
from models import build_model, operator, tensor

import tq
from tq.calibration.normalization import normalization
from tq.calibration.samples import Calls

f32 = np.float32
FORMS = {
    "pairs": list(zip(IMAGES, TRUE, strict=True)),
    "dicts": [({"image": image}, label) for image, label in zip(IMAGES, TRUE, strict=True)],
    "lists": [([image], label) for image, label in zip(IMAGES, TRUE, strict=True)],
    "stacked": {"image": IMAGES, "labels": np.array(TRUE)},
    "function": lambda: zip(IMAGES, TRUE, strict=True),
    "one-hot": [(image, np.eye(3)[label].astype(int)) for image, label in zip(IMAGES, TRUE, strict=True)],
}


def representative_dataset():
    for image in IMAGES:
        yield [image]


def quantized(**options):
    return tq.quantize_model(classifier(), "int8", calibration=representative_dataset, min_elements=0, **options)


def test_a_function_is_a_data_set():
    """TFLiteConverter's representative_dataset was refused: "of type function"."""
    assert quantized() == tq.quantize_model(classifier(), "int8", calibration=list(IMAGES), min_elements=0)
    assert tq.calibrate(classifier(), representative_dataset).samples == 6
    with pytest.raises(ValueError, match="are of type int"):
        tq.calibrate(classifier(), lambda: 3)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_labelled_set_is_evaluated(form):
    found = tq.evaluate(classifier(), FORMS[form])
    assert (found.value, found.samples, float(found)) == (1.0, 6, 1.0)


@pytest.mark.parametrize("form", FORMS)
def test_labels_do_not_disturb_functions_that_need_none(form):
    made = tq.Model(classifier())
    assert tq.calibrate(made, FORMS[form]).range("scores") == tq.calibrate(made, list(IMAGES)).range("scores")
    exact, rounded = classifier(), quantized()
    assert tq.compare(exact, rounded, samples=FORMS[form]).samples == 6
    assert tq.sensitivity(exact, FORMS[form], min_elements=0).samples == 6


def test_labels_of_a_file(tmp_path):
    np.savez(tmp_path / "x.npz", image=IMAGES, labels=TRUE)
    assert tq.evaluate(classifier(), tmp_path / "x.npz").value == 1
    np.savez(tmp_path / "x.npz", image=IMAGES, labels=TRUE[:5])
    with pytest.raises(ValueError, match="different numbers of samples"):
        tq.evaluate(classifier(), tmp_path / "x.npz")


def test_a_file_of_objects_is_refused_without_advice_to_allow_them(tmp_path):
    """NumPy advises to allow pickles, which run code."""
    np.savez(tmp_path / "x.npz", image=np.array([{}, None], object))
    with pytest.raises(ValueError, match="it holds Python objects") as refused:
        tq.calibrate(classifier(), tmp_path / "x.npz")
    assert "allow_pickle" not in str(refused.value)
    (tmp_path / "m.npz").write_bytes(classifier())
    with pytest.raises(ValueError, match="it is a TFLite model"):
        tq.calibrate(classifier(), tmp_path / "m.npz")


def test_two_arrays_are_the_inputs_of_a_model_with_two():
    tensors = [tensor("a", shape=[2]), tensor("b", shape=[2]), tensor("y", shape=[2])]
    calls = Calls(tq.Model(build_model(tensors, [operator("ADD", [0, 1], [2])], inputs=[0, 1], outputs=[2])))
    x = np.zeros(2, f32)
    for item, label in (((x, x), None), (([x, x], 3), 3), (({"a": x, "b": x}, 3), 3), ([x, x], None)):
        _inputs, sample, found = next(calls.labelled([item]))
        assert found == label and len(sample) == 2


# ---- evaluate ----


def test_an_integer_model_is_evaluated_on_real_values():
    model = tq.Model(quantized(io="int8"))
    assert model.inputs[0].dtype == np.int8
    assert tq.evaluate(model, FORMS["pairs"]).value == 1
    ready = [(model.inputs[0].quantization.quantize(image), label) for image, label in FORMS["pairs"]]
    assert tq.evaluate(model, ready).values == tq.evaluate(model, FORMS["pairs"]).values


def test_a_function_measures_outputs_by_name_and_label():
    def right(outputs, label):
        return {"right": np.argmax(outputs["scores"]) == label, "loss": 2.0 * label}

    found = tq.evaluate(classifier(), FORMS["pairs"], right)
    assert found.means == {"right": 1.0, "loss": pytest.approx(2 * np.mean(TRUE))}
    assert found.values[0] == {"right": 1.0, "loss": 2.0 * TRUE[0]}
    assert tq.evaluate(classifier(), FORMS["pairs"], lambda outputs, label: 0.5).means == {"metric": 0.5}


def test_top_5_and_max_samples():
    wrong = [(image, (label + 1) % 3) for image, label in FORMS["pairs"]]
    assert tq.evaluate(classifier(), wrong).value == 0
    assert tq.evaluate(classifier(), wrong, "top-5").value == 1
    assert tq.evaluate(classifier(), wrong, max_samples=2).samples == 2


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (list(IMAGES), {}, "sample 0 has no label"),
        ([(IMAGES[0], 3)], {}, "the label 3 is no class: the output has 3"),
        ([(IMAGES[0], -1)], {}, "the label -1 is no class"),
        ([(IMAGES[0], 0.5)], {}, "the label 0.5 is no class of an output of the shape"),
        ([(IMAGES[0], "cat")], {}, "the label 'cat' is no class"),
        ([], {}, "the data set is empty"),
        (FORMS["pairs"], {"metric": "top1"}, "did you mean 'top-1'"),
        (FORMS["pairs"], {"metric": lambda outputs, label: None}, "the metric of sample 0 is None; a number"),
        (FORMS["pairs"], {"max_samples": 0}, "max_samples is 0"),
        ([(IMAGES[0, 0], 1)], {}, "sample 0: input 'image' has the shape"),
    ],
)
def test_sets_and_metrics_that_do_not_fit_are_refused(data, options, words):
    with pytest.raises(ValueError, match=words):
        tq.evaluate(classifier(), data, **options)


# ---- compare and sensitivity ----


def test_compare_sums_over_samples():
    exact, rounded = classifier(), quantized()
    singles = [tq.compare(exact, rounded, image) for image in IMAGES]
    found = tq.compare(exact, rounded, samples=IMAGES)
    assert found.samples == 6 and found.outputs[0].max_error == max(item.outputs[0].max_error for item in singles)
    assert found.outputs[0].different == sum(item.outputs[0].different for item in singles)
    least, most = (f(item.outputs[0].sqnr_db for item in singles) for f in (min, max))
    assert least < found.outputs[0].sqnr_db < most
    assert tq.compare(exact, rounded, samples=IMAGES, max_samples=1).rows == singles[0].rows


def test_compare_feeds_real_values_to_integer_inputs():
    rounded = quantized(io="int8")
    for pair in ((classifier(), rounded), (rounded, classifier())):
        assert tq.compare(*pair, samples=IMAGES).outputs[0].sqnr_db > 25
    with pytest.raises(ValueError, match="inputs are one sample"):
        tq.compare(rounded, rounded, IMAGES[0], samples=IMAGES)


def test_sensitivity_runs_all_samples():
    """It ran four."""
    assert tq.sensitivity(classifier(), IMAGES, min_elements=0).samples == 6
    assert tq.sensitivity(classifier(), IMAGES, min_elements=0, max_samples=2).samples == 2


# ---- pictures ----


def metadata_of(mean, std):
    """TFLITE_METADATA with one input's NormalizationOptions."""
    b = flatbuffers.Builder()

    def floats(values):
        b.StartVector(4, len(values), 4)
        for value in reversed(values):
            b.PrependFloat32(value)
        return b.EndVector()

    def vector(offset):
        b.StartVector(4, 1, 4)
        b.PrependUOffsetTRelative(offset)
        return b.EndVector()

    means, stds = floats(mean), floats(std)
    b.StartObject(2)
    b.PrependUOffsetTRelativeSlot(0, means, 0)
    b.PrependUOffsetTRelativeSlot(1, stds, 0)
    options = b.EndObject()
    b.StartObject(2)
    b.PrependByteSlot(0, 1, 0)
    b.PrependUOffsetTRelativeSlot(1, options, 0)
    units = vector(b.EndObject())
    for slot, count in (
        (4, 7),
        (2, 7),
        (3, 8),
    ):  # the TensorMetadata's units, the SubGraphMetadata's inputs, the root's
        b.StartObject(count)
        b.PrependUOffsetTRelativeSlot(slot, units, 0)
        made = b.EndObject()
        units = made if slot == 3 else vector(made)
    b.Finish(units, b"M001")
    return bytes(b.Output())


@pytest.fixture
def folder(tmp_path):
    """Two classes, of dark and of bright pictures of 4 x 4 pixels."""
    image = pytest.importorskip("PIL.Image")
    for name, pixel in (("dark", 10), ("bright", 200)):
        (tmp_path / name).mkdir()
        for number in range(2):
            image.new("RGB", (4, 4), (pixel, pixel + number, 255)).save(tmp_path / name / f"{number}.png")
    (tmp_path / "dark" / "notes.txt").write_text("no picture")
    return tmp_path


def test_pictures_are_resized_normalized_and_labelled(folder):
    model = tq.Model(classifier())
    found = tq.pictures(folder, model, mean=127.5, std=[127.5, 100, 50])
    assert (len(found), found.classes) == (4, ["bright", "dark"])
    pairs = list(found)
    assert [label for _, label in pairs] == [0, 0, 1, 1]
    assert pairs[3][0].shape == tuple(SHAPE) and pairs[3][0].dtype == f32
    assert pairs[3][0][0, 0, 0] == pytest.approx([(10 - 127.5) / 127.5, (11 - 127.5) / 100, 127.5 / 50])
    assert tq.calibrate(model, found).samples == 4 and tq.evaluate(model, found).samples == 4


def test_metadata_give_mean_and_std(folder):
    data = metadata_of([127.5], [64.0])
    assert normalization(tq.Model(classifier(data))) == ((127.5,), (64.0,))
    assert tq.evaluate(classifier(data), folder).samples == 4
    assert tq.calibrate(classifier(data), str(folder)).samples == 4


def test_damaged_metadata_are_refused():
    """No cut and no changed byte crashes, reads outside or hangs."""
    data = metadata_of([127.5], [64.0])
    for size in range(1, len(data)):
        try:
            normalization(tq.Model(classifier(data[:size])))
        except ValueError as error:
            assert "are damaged" in str(error)
    for place in range(len(data)):
        changed = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        try:
            normalization(tq.Model(classifier(changed)))
        except ValueError as error:
            assert "are damaged" in str(error)


def test_a_quantized_input_takes_pixels_or_quantized_values(folder):
    raw = tq.Model(classifier(kind="UINT8", scale=[1 / 255], zero_point=[0]))
    first = next(iter(tq.pictures(folder, raw)))[0]
    assert first.dtype == np.uint8 and first[0, 0, 0].tolist() == [200, 200, 255]
    scaled = next(iter(tq.pictures(folder, raw, mean=0, std=255)))[0]
    assert np.array_equal(first, scaled)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, r"states no mean and std of input 'image': give them, as in tq.pictures\(.*--mean"),
        ({"mean": 1}, "mean and std belong together"),
        ({"mean": [1, 2], "std": 1}, "mean has 2 numbers; the input has 3 channels"),
        ({"mean": 1, "std": 0}, "a std above 0"),
    ],
)
def test_normalizations_that_do_not_fit_are_refused(folder, options, words):
    with pytest.raises(ValueError, match=words):
        tq.pictures(folder, tq.Model(classifier()), **options)


def test_folders_and_files_that_are_no_pictures_are_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no pictures"):
        tq.pictures(tmp_path / "empty", tq.Model(classifier()), mean=0, std=1)
    (folder / "dark" / "9.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"9\.png' is no picture"):
        list(tq.pictures(folder, tq.Model(classifier()), mean=0, std=1))
    flat = tq.Model(build_model([tensor("x", shape=[4])], [], inputs=[0], outputs=[0]))
    with pytest.raises(ValueError, match=r"pictures need \[1, height, width"):
        tq.pictures(folder, flat, mean=0, std=1)
