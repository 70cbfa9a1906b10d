# SPDX-License-Identifier: Apache-2.0
"""tflite-micro's audio frontend, whose interpreter does not compute shapes: outputs have theirs in the file."""

import flatbuffers.flexbuffers as flexbuffers
import numpy as np

from generators import MICRO, generator

TYPES = {"float32": 0, "int32": 2, "int16": 7}


def custom(m, inputs, outputs, runs=2, **options):
    """Appends the operator that is wanted.  Its inputs are never resized."""
    m.operator(m.name, inputs, outputs, custom_options=flexbuffers.Dumps(dict(sorted(options.items()))))
    m.runs, m.fixed = runs, True


def plain(m, type, shape, draw=None):
    return m.input(type, shape, draw=draw, scale=None)


@generator("SignalWindow", "int16", resolver=MICRO)
def window(m, kind):
    shape = m.shape(1, 3, 300)
    x = plain(m, kind, shape)
    weights = m.input_or_constant(kind, shape[-1:], scale=None)
    custom(m, [x, weights], [m.output(kind, shape, scale=None)], shift=m.integer(0, 15))


@generator("SignalFftAutoScale", "int16", resolver=MICRO)
def auto_scale(m, kind):
    shape = m.shape(1, 1, 300)
    shift = m.integer(0, 15)
    x = plain(m, kind, shape, lambda: m.codes(kind, shape) >> shift)
    custom(m, [x], [m.output(kind, shape, scale=None), m.output("int32")])


def length(m):
    """An even length of which half has no prime factor above 5, and is more than 1."""
    while True:
        half = 2 ** m.integer(0, 7) * m.pick(1, 1, 1, 3, 5, 9, 15, 25)
        if 1 < half <= 300:
            return 2 * half


def numbers(m, kind, shape):
    if kind == "float32":
        return m.floats(shape, special=0)
    return m.codes(kind, shape) >> m.integer(0, 12)


@generator("SignalRfft", "int16", "int32", "float32", resolver=MICRO)
def rfft(m, kind):
    n, lead = length(m), m.shape(0, 2, 4)
    shape = [*lead, n if m.chance(0.5) else m.integer(1, n)]
    x = plain(m, kind, shape, lambda: numbers(m, kind, shape))
    custom(m, [x], [m.output(kind, [*lead, n + 2], scale=None)], T=TYPES[kind], fft_length=n)


@generator("SignalIrfft", "int16", "int32", "float32", resolver=MICRO)
def irfft(m, kind):
    n, lead = length(m), m.shape(0, 2, 4)
    shape = [*lead, n + 2]
    x = plain(m, kind, shape, lambda: numbers(m, kind, shape))
    custom(m, [x], [m.output(kind, [*lead, n], scale=None)], T=TYPES[kind], fft_length=n)


@generator("SignalEnergy", "int16", resolver=MICRO)
def energy(m, kind):
    bins = m.integer(1, 200)
    x = plain(m, kind, [2 * bins])
    custom(m, [x], [m.output("uint32", [bins])], start_index=0, end_index=bins)


@generator("SignalFilterBank", "uint32", resolver=MICRO)
def filter_bank(m, kind):
    bins, channels = m.integer(1, 120), m.integer(1, 30)
    widths = m.rng.integers(0, max(bins // 4, 1), channels + 1)
    starts = [m.integer(0, bins - int(width)) for width in widths]
    places = np.cumsum([0, *widths[:-1]])
    weights = max(int(widths.sum()), 1)
    inputs = [plain(m, kind, [bins])]
    inputs += [m.constant("int16", m.codes("int16", [weights]), scale=None) for _ in range(2)]
    inputs += [m.constant("int16", values, scale=None) for values in (starts, places, widths)]
    custom(m, inputs, [m.output("uint64", [channels])], num_channels=channels)


@generator("SignalFilterBankSquareRoot", "uint64", resolver=MICRO)
def square_root(m, kind):
    shape = m.shape(1, 1, 100)
    x = plain(m, kind, shape, lambda: m.codes(kind, shape) >> m.integers("uint64", shape, 0, 63))
    bits = m.input("int32", [], draw=lambda: np.int32(m.integer(0, 15)))
    custom(m, [x, bits], [m.output("uint32", shape)])


@generator("SignalFilterBankSpectralSubtraction", "uint32", resolver=MICRO)
def spectral_subtraction(m, kind):
    shape = m.shape(1, 1, 100)
    bits, shift = m.integer(8, 16), m.integer(0, 31)
    share, other = m.integer(0, 2**bits), m.integer(0, 2**bits)
    options = {
        "smoothing": share,
        "one_minus_smoothing": 2**bits - share,
        "alternate_smoothing": other,
        "alternate_one_minus_smoothing": 2**bits - other,
        "min_signal_remaining": m.integer(0, 2**bits),
        "smoothing_bits": m.integer(0, 12),
        "spectral_subtraction_bits": bits,
        "clamping": m.chance(0.5),
        "num_channels": shape[0],
    }
    x = plain(m, kind, shape, lambda: m.codes(kind, shape) >> np.uint32(shift))
    custom(m, [x], [m.output(kind, shape), m.output(kind, shape)], 4, **options)


@generator("SignalPCAN", "uint32", resolver=MICRO)
def pcan(m, kind):
    shape = m.shape(1, 1, 100)
    x, noise = (plain(m, kind, shape, lambda: m.codes(kind, shape) >> m.integers(kind, shape, 0, 31)) for _ in range(2))
    table = m.constant("int16", m.codes("int16", [125]), scale=None)
    custom(m, [x, noise, table], [m.output(kind, shape)], snr_shift=m.integer(0, 20))


@generator("SignalFilterBankLog", "uint32", resolver=MICRO)
def log(m, kind):
    shape = m.shape(1, 1, 200)
    x = plain(m, kind, shape, lambda: m.codes(kind, shape) >> m.integers(kind, shape, 0, 31))
    options = {"input_correction_bits": m.integer(0, 8), "output_scale": m.pick(1, 64, 1600, m.integer(1, 2**16))}
    custom(m, [x], [m.output("int16", shape, scale=None)], **options)


@generator("SignalFramer", "int16", resolver=MICRO)
def framer(m, kind):
    step, lead, prefill = m.integer(1, 12), m.shape(0, 2, 4), m.chance(0.5)
    frames = m.integer(1, 4) if prefill else 1  # so that all or none are complete
    size = m.integer(step, 40) if prefill else m.integer(1, 40)
    x = plain(m, kind, [*lead, step * frames])
    outputs = [m.output(kind, [*lead, frames, size], scale=None), m.output("bool")]
    custom(m, [x], outputs, frame_size=size, frame_step=step, prefill=prefill, runs=12)


@generator("SignalStacker", "int16", resolver=MICRO)
def stacker(m, kind):
    channels, left, right = m.integer(1, 9), m.integer(0, 4), m.integer(0, 4)
    options = {"num_channels": channels, "stacker_left_context": left, "stacker_right_context": right}
    outputs = [m.output(kind, [channels * (left + right + 1)], scale=None), m.output("bool")]
    custom(m, [plain(m, kind, [channels])], outputs, 12, stacker_step=m.integer(1, left + right + 1), **options)


@generator("SignalDelay", "int16", resolver=MICRO)
def delay(m, kind):
    shape = m.shape(1, 3, 60)
    custom(m, [plain(m, kind, shape)], [m.output(kind, shape, scale=None)], 5, delay_length=m.integer(0, 40))


@generator("SignalOverlapAdd", "int16", "float32", resolver=MICRO)
def overlap_add(m, kind):
    lead, frames, size = m.shape(0, 2, 4), m.integer(1, 4), m.integer(1, 30)
    step, shape = m.integer(1, size), [*lead, frames, size]
    x = plain(m, kind, shape, lambda: numbers(m, kind, shape))
    custom(m, [x], [m.output(kind, [*lead, frames * step], scale=None)], 5, T=TYPES[kind], frame_step=step)
