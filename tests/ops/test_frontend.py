# SPDX-License-Identifier: Apache-2.0
"""The operators of tflite-micro's audio frontend: what they mean, what they remember, what they refuse.

tests/ops/test_ops.py compares them with tflite-micro bit for bit, where its package is installed."""

import math
from importlib.util import find_spec

import differential
import flatbuffers.flexbuffers as flexbuffers
import numpy as np
import oracle
import pytest
from models import build_model, operator, tensor

import tq

TYPES = {"float32": 0, "int32": 2, "int16": 7}


def model(name, inputs, outputs, constants=(), **options):
    """inputs: (type, shape); constants: arrays, further inputs; outputs: types."""
    tensors = [tensor(f"x{k}", shape, kind.upper()) for k, (kind, shape) in enumerate(inputs)]
    tensors += [tensor(f"c{k}", a.shape, a.dtype.name.upper(), a) for k, a in enumerate(constants)]
    operands = list(range(len(tensors)))
    tensors += [tensor(f"y{k}", [1], kind.upper()) for k, kind in enumerate(outputs)]
    results = list(range(len(operands), len(tensors)))
    custom = flexbuffers.Dumps(options)
    return build_model(
        tensors, [operator(name, operands, results, custom_options=custom)], operands[: len(inputs)], results
    )


class Runner:
    def __init__(self, *args, **options):
        self.interpreter = tq.Interpreter(model_content=model(*args, **options))
        self.interpreter.allocate_tensors()

    def __call__(self, *values):
        for index, value in enumerate(values):
            self.interpreter.set_tensor(index, value)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(item["index"]) for item in self.interpreter.get_output_details()]


def rng():
    return np.random.default_rng(11)


# ---- what they mean ----


@pytest.mark.parametrize("length", [4, 8, 30, 64, 90, 100, 512])
def test_transforms_are_fourier_transforms(length):
    x = rng().normal(0, 1, (3, length)).astype(np.float32)
    (found,) = Runner("SignalRfft", [("float32", x.shape)], ["float32"], T=0, fft_length=length)(x)
    wanted = np.fft.rfft(x)
    np.testing.assert_allclose(found[:, ::2] + 1j * found[:, 1::2], wanted, atol=2e-6 * np.abs(wanted).max())
    (back,) = Runner("SignalIrfft", [("float32", found.shape)], ["float32"], T=0, fft_length=length)(found)
    np.testing.assert_allclose(back, x, atol=2e-6)
    for kind, one, error in (("int16", 2**13, 5), ("int32", 2**29, 40)):
        codes = (x[:1] * one / 4).astype(kind)
        (found,) = Runner("SignalRfft", [(kind, codes.shape)], [kind], T=TYPES[kind], fft_length=length)(codes)
        wanted = np.fft.rfft(codes.astype(float)) / length
        np.testing.assert_allclose(
            found[:, ::2] + 1j * found[:, 1::2], wanted, atol=error + 2e-4 * np.abs(wanted).max()
        )


def test_the_published_spectrum_of_an_impulse():
    """signal/micro/kernels/fft_test.cc, RfftTestSize64Int16."""
    x = np.zeros(64, np.int16)
    x[0] = 16384
    (found,) = Runner("SignalRfft", [("int16", [64])], ["int16"], T=7, fft_length=64)(x)
    assert found.tolist() == [256, 0] * 33


def test_short_frames_are_padded():
    x = rng().integers(-999, 999, 20).astype(np.int16)
    (short,) = Runner("SignalRfft", [("int16", [20])], ["int16"], T=7, fft_length=32)(x)
    (whole,) = Runner("SignalRfft", [("int16", [32])], ["int16"], T=7, fft_length=32)(np.pad(x, (0, 12)))
    assert short.tolist() == whole.tolist()


def test_window_scale_and_energy():
    x, weights = np.int16([[100, -3, -32768, 32767]]), np.int16([4096, 1, 32767, 32767])
    run = Runner("SignalWindow", [("int16", [1, 4])], ["int16"], [weights], shift=12)
    assert run(x)[0].tolist() == [[100, -1, -32768, 32767]]
    scaled, bits = Runner("SignalFftAutoScale", [("int16", [3])], ["int16", "int32"])(np.int16([3, -100, 7]))
    assert scaled.tolist() == [768, -25600, 1792] and bits == 8
    run = Runner("SignalEnergy", [("int16", [8])], ["uint32"], start_index=1, end_index=3)
    (found,) = run(np.int16([9, 9, 3, -4, -32768, -32768, 9, 9]))
    assert found.tolist() == [0, 25, 2**31, 0]


def test_filter_bank():
    weights, starts, places, widths = np.int16([1, 2, 3]), np.int16([0, 0, 1]), np.int16([0, 0, 1]), np.int16([1, 1, 2])
    run = Runner(
        "SignalFilterBank", [("uint32", [3])], ["uint64"], [weights, -weights, starts, places, widths], num_channels=2
    )
    (found,) = run(np.uint32([10, 2**32 - 1, 1]))
    # The unweighted first band and the weighted second, then the unweighted second and the weighted third.
    assert found.tolist() == [0, 2 * (2**32 - 1) + 3 - 10]


def test_square_roots_are_rounded():
    x = np.uint64([0, 1, 2, 3, 6, 7, 2**31, 2**32 - 1, 2**32, 2**50 + 12345, 2**64 - 1])
    run = Runner("SignalFilterBankSquareRoot", [("uint64", x.shape), ("int32", [])], ["uint32"])
    wanted = [min(math.isqrt(4 * int(v)) + 1 >> 1, 2**16 - 1 if v < 2**32 else 2**32 - 1) for v in x]
    assert run(x, np.int32(0))[0].tolist() == wanted
    assert run(x, np.int32(3))[0].tolist() == [v >> 3 for v in wanted]
    for bits in (-1, 32):
        with pytest.raises(tq.RunError, match=f"shift by {bits} bits"):
            run(x, np.int32(bits))


def test_logarithms():
    x = np.concatenate([np.arange(2, 300), 2 ** np.arange(9, 29), [2**29 - 1]]).astype(np.uint32)
    options = {"input_correction_bits": 3, "output_scale": 1600}
    (found,) = Runner("SignalFilterBankLog", [("uint32", x.shape)], ["int16"], **options)(x)
    np.testing.assert_allclose(found, np.minimum(1600 * np.log(x * 8.0), 32767), atol=4)  # of 128 steps an octave
    options["output_scale"] = 2800
    (found,) = Runner("SignalFilterBankLog", [("uint32", [3])], ["int16"], **options)(np.uint32([0, 1, 2**28]))
    assert found.tolist() == [0, 5822, 32767]


NOISE = {
    "smoothing": 4096,
    "one_minus_smoothing": 12288,
    "alternate_smoothing": 16384,
    "alternate_one_minus_smoothing": 0,
    "min_signal_remaining": 1638,
    "smoothing_bits": 2,
    "spectral_subtraction_bits": 14,
    "clamping": False,
    "num_channels": 2,
}


def test_spectral_subtraction_follows_the_noise_and_is_reset():
    run = Runner("SignalFilterBankSpectralSubtraction", [("uint32", [2])], ["uint32", "uint32"], **NOISE)
    x = np.uint32([1000, 1000])
    first = [out.tolist() for out in run(x)]
    assert first == [[750, 99], [1000, 4000]]  # a quarter of 4000 at once, all of it; at least 1638 / 2^14 is left
    assert [out.tolist() for out in run(x)] == [[563 - 1, 99], [1750, 4000]]
    run.interpreter.reset_all_variables()
    assert [out.tolist() for out in run(x)] == first


# ---- what they remember ----


def test_frames_of_a_stream():
    run = Runner("SignalFramer", [("int16", [2, 6])], ["int16", "bool"], frame_size=5, frame_step=3, prefill=False)
    stream = np.arange(1, 13, dtype=np.int16)
    for _ in range(2):
        found, valid = run(np.stack([stream[:6], -stream[:6]]))
        assert not valid and found.tolist() == [[[0] * 5, [1, 2, 3, 4, 5]], [[0] * 5, [-1, -2, -3, -4, -5]]]
        found, valid = run(np.stack([stream[6:], -stream[6:]]))
        assert valid and found[0].tolist() == [[4, 5, 6, 7, 8], [7, 8, 9, 10, 11]]
        run.interpreter.reset_all_variables()


def test_frames_that_begin_with_zeros():
    run = Runner("SignalFramer", [("int16", [3])], ["int16", "bool"], frame_size=5, frame_step=3, prefill=True)
    for _ in range(2):
        found, valid = run(np.int16([1, 2, 3]))
        assert valid and found.tolist() == [[0, 0, 1, 2, 3]]
        run.interpreter.reset_all_variables()


def test_stacked_rows():
    options = {"num_channels": 2, "stacker_left_context": 1, "stacker_right_context": 1, "stacker_step": 2}
    run = Runner("SignalStacker", [("int16", [2])], ["int16", "bool"], **options)
    for _ in range(2):
        rows = [run(np.int16([k, -k])) for k in range(1, 6)]
        assert [bool(valid) for _, valid in rows] == [False, True, False, True, False]
        assert [found.tolist() for found, _ in rows][1::2] == [[1, -1, 1, -1, 2, -2], [2, -2, 3, -3, 4, -4]]
        assert not rows[0][0].any()
        run.interpreter.reset_all_variables()


def test_delayed_samples():
    run = Runner("SignalDelay", [("int16", [2, 3])], ["int16"], delay_length=4)
    for _ in range(2):
        rows = [run(np.int16([[k, k + 1, k + 2], [-k, 0, 0]]))[0].tolist() for k in (1, 4, 7)]
        assert rows == [[[0, 0, 0]] * 2, [[0, 1, 2], [0, -1, 0]], [[3, 4, 5], [0, -4, 0]]]
        run.interpreter.reset_all_variables()


@pytest.mark.parametrize("kind", ["int16", "float32"])
def test_overlapping_frames_are_added(kind):
    run = Runner("SignalOverlapAdd", [(kind, [2, 3])], [kind], T=TYPES[kind], frame_step=2)
    for _ in range(2):
        assert run(np.array([[1, 2, 3], [4, 5, 30000]], kind))[0].tolist() == [1, 2, 7, 5]
        top = 32767 if kind == "int16" else 60000
        assert run(np.array([[30000, 0, 0], [0, 0, 0]], kind))[0].tolist() == [top, 0, 0, 0]
        run.interpreter.reset_all_variables()


# ---- what they refuse ----

SAMPLES, BANK = [("int16", [8])], [("uint32", [4])]
SHORT = [np.zeros(2, np.int16)] * 2
REFUSED = [
    (("SignalWindow", SAMPLES, ["int16"], [np.ones(3, np.int16)]), {"shift": 1}, "3 weights for 8 samples"),
    (("SignalWindow", SAMPLES, ["int16"], [np.ones(8, np.int16)]), {"shift": 32}, "option shift 32"),
    (("SignalWindow", SAMPLES, ["int16"], [np.ones(8, np.int16)]), {}, "no option shift"),
    (("SignalRfft", SAMPLES, ["int16"]), {"fft_length": 6, "T": 7}, "has frames of 8 values"),
    (("SignalRfft", SAMPLES, ["int16"]), {"fft_length": 14, "T": 7}, "a product of 2, 3 and 5"),
    (("SignalRfft", SAMPLES, ["int16"]), {"fft_length": 9, "T": 7}, "needs an even one"),
    (("SignalRfft", SAMPLES, ["int16"]), {"fft_length": 2**30, "T": 7}, "needs an even one from 4 to 2^24"),
    (("SignalRfft", SAMPLES, ["int16"]), {"fft_length": 16, "T": 2}, "option T says INT32"),
    (("SignalRfft", [("int16", [])], ["int16"]), {"fft_length": 16}, "input 0"),
    (("SignalIrfft", SAMPLES, ["int16"]), {"fft_length": 8, "T": 7}, "has frames of 8 values"),
    (("SignalEnergy", SAMPLES, ["uint32"]), {"start_index": 0, "end_index": 5}, "option end_index 5"),
    (("SignalEnergy", [("int16", [7])], ["uint32"]), {"start_index": 0, "end_index": 3}, "needs an even number"),
    (("SignalFilterBank", BANK, ["uint64"], SHORT * 2 + SHORT[:1]), {"num_channels": 2}, "num_channels 2 needs 3"),
    (("SignalFilterBankSpectralSubtraction", BANK, ["uint32"] * 2), NOISE, "option num_channels 2"),
    (("SignalPCAN", BANK * 2, ["uint32"], [np.ones(9, np.int16)]), {"snr_shift": 1}, "it needs 125"),
    (("SignalPCAN", [*BANK, ("uint32", [3])], ["uint32"], [np.ones(125, np.int16)]), {"snr_shift": 1}, "3 estimates"),
    (("SignalFilterBankLog", BANK, ["int16"]), {"input_correction_bits": 40, "output_scale": 1}, "bits 40"),
    (("SignalFramer", SAMPLES, ["int16", "bool"]), {"frame_size": 8, "frame_step": 3}, "no multiple of frame_step"),
    (("SignalFramer", SAMPLES, ["int16", "bool"]), {"frame_size": 8, "frame_step": 0}, "frame_step 0"),
    (("SignalFramer", SAMPLES, ["int16", "bool"]), {"frame_size": 2, "frame_step": 4, "prefill": True}, "prefill"),
    (("SignalDelay", SAMPLES, ["int16"]), {"delay_length": -1}, "delay_length -1"),
    (("SignalDelay", [("int16", [2, 0])], ["int16"]), {"delay_length": 1}, "rows of 0 samples"),
    (("SignalOverlapAdd", [("int16", [2, 8])], ["int16"]), {"T": 7, "frame_step": 9}, "frame_step 9"),
]


@pytest.mark.parametrize(("parts", "options", "text"), REFUSED, ids=lambda part: part if isinstance(part, str) else "")
def test_what_breaks_a_contract_is_named(parts, options, text):
    with pytest.raises(tq.RunError) as caught:
        tq.Interpreter(model_content=model(*parts, **options)).allocate_tensors()
    assert text in str(caught.value) and f"operator 0 ({parts[0]})" in str(caught.value)


def test_queues_larger_than_memory_are_refused():
    data = model("SignalDelay", SAMPLES, ["int16"], delay_length=2**30 - 1)
    with pytest.raises((tq.Error, MemoryError)):
        tq.Interpreter(model_content=data, max_memory=1 << 24).allocate_tensors()


@pytest.mark.parametrize("bad", [(-1, 0, 1), (3, 0, 2), (0, 2, 2), (0, -1, 1), (32767, 0, 32767)])
def test_bands_outside_the_spectrum_are_data(bad):
    vectors = [np.int16([0, value]) for value in bad]
    run = Runner(
        "SignalFilterBank", [("uint32", [4])], ["uint64"], [np.ones(3, np.int16)] * 2 + vectors, num_channels=1
    )
    with pytest.raises(tq.RunError, match="band 1 is"):
        run(np.ones(4, np.uint32))


# ---- whole models ----


@pytest.mark.corpus
def test_audio_preprocessors(corpus):
    paths = [path for path in corpus if "audio_preprocessor" in path.name]
    if not paths:
        pytest.skip("no audio_preprocessor in the models")
    runs = [{0: rng().normal(0, scale, (1, 480)).astype(np.int16)} for scale in (3000, 100, 12000)]
    for path in paths:
        opened = tq.Model(path)
        outputs = [index for item in opened.subgraphs[0].operators[-2:] for index in item.output_indices]
        (mine,) = oracle.ask("tensors", [(str(path), "TQ", runs, {}, outputs)])
        assert isinstance(mine, list), mine
        if find_spec("tflite_micro"):
            (theirs,) = oracle.ask("tensors", [(str(path), "MICRO", runs, {}, outputs)])
            assert differential.compare_runs(opened, runs, mine, theirs)[0] is None
