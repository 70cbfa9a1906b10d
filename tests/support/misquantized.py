# SPDX-License-Identifier: Apache-2.0
"""The generators' valid models with one tensor's quantization broken, and what LiteRT's three kernel sets make of them.

    python tests/support/misquantized.py CONV_2D --types int8 --seeds 20       what tq does not do as LiteRT does
    python tests/support/misquantized.py --numerics xnnpack --breaks "no scale"
    python tests/support/misquantized.py LOGISTIC --litert                     what LiteRT runs, refuses, and dies of

A function under `@breaks` takes a random generator and a tensor's `Grid`, and returns another one, or None where it
has nothing to break.  What LiteRT runs, tq must run with its bits: `compare` returns the cases where it does not.
"""

import argparse
import dataclasses
import sys
from dataclasses import dataclass

import numpy as np

if __name__ == "__main__":
    import built  # noqa: F401

import differential
import generators
import oracle
from generators.draft import RANGES, Case

import tq

BREAKS = {}  # name: function
OTHER_OF_8_BITS = {"int8": "uint8", "uint8": "int8"}


@dataclass
class Grid:
    """A tensor's quantization.  scale, zero_point: lists of one length, empty for none."""

    type: str
    shape: tuple
    scale: list
    zero_point: list
    quantized_dimension: int = 0


def breaks(name):
    def enter(function):
        BREAKS[name] = function
        return function

    return enter


def changed(grid, **fields):
    return dataclasses.replace(grid, **fields)


def scaled(grid, factor):
    with np.errstate(over="ignore"):
        return changed(grid, scale=[float(np.float32(s * factor)) for s in grid.scale])


@breaks("another scale")
def another_scale(rng, grid):
    return scaled(grid, 2 ** rng.normal(0, 0.5))


@breaks("100 times the scale")
def larger_scale(_rng, grid):
    return scaled(grid, 100)


@breaks("a hundredth of the scale")
def smaller_scale(_rng, grid):
    return scaled(grid, 0.01)


@breaks("another zero point")
def another_zero_point(rng, grid):
    low, high = RANGES[grid.type] if grid.type in ("int8", "uint8") else (-99, 99)
    return changed(grid, zero_point=[int(rng.integers(low, high))] * len(grid.zero_point))


@breaks("a zero point outside the type")
def zero_point_outside(rng, grid):
    low, high = RANGES[grid.type]
    if high > 2**15:
        return None
    value = int(rng.choice([low - 1, low - 72, high + 1, high + 73, high + 500]))
    return changed(grid, zero_point=[value] * len(grid.zero_point))


@breaks("zero points that differ")
def zero_points_differ(rng, grid):
    if len(grid.scale) < 2:
        return None
    return changed(grid, zero_point=[int(z) for z in rng.integers(-9, 9, len(grid.scale))])


@breaks("a scale for each channel")
def per_axis(rng, grid):
    axes = [axis for axis, n in enumerate(grid.shape) if n > 1]
    if len(grid.scale) != 1 or not axes:
        return None
    axis = int(rng.choice(axes))
    scales = grid.scale[0] * 2 ** rng.normal(0, 0.5, grid.shape[axis]) * np.ones(grid.shape[axis])
    zero_point = grid.zero_point * len(scales)
    return changed(grid, scale=scales.astype(np.float32).tolist(), zero_point=zero_point, quantized_dimension=axis)


@breaks("one scale in place of many")
def per_tensor(_rng, grid):
    if len(grid.scale) < 2:
        return None
    return changed(grid, scale=grid.scale[:1], zero_point=grid.zero_point[:1], quantized_dimension=0)


@breaks("another quantized_dimension")
def another_dimension(rng, grid):
    others = [axis for axis in range(len(grid.shape)) if axis != grid.quantized_dimension]
    if not others:
        return None
    return changed(grid, quantized_dimension=int(rng.choice(others)))


@breaks("no scale")
def without(_rng, grid):
    return changed(grid, scale=[], zero_point=[], quantized_dimension=0)


@breaks("a scale of 0")
def zero_scale(_rng, grid):
    return scaled(grid, 0)


@breaks("a scale below 0")
def negative_scale(_rng, grid):
    return scaled(grid, -1)


@breaks("a scale of NaN")
def no_number(_rng, grid):
    return scaled(grid, np.nan)


@breaks("an infinite scale")
def infinite(_rng, grid):
    return scaled(grid, np.inf)


@breaks("a denormal scale")
def denormal(_rng, grid):
    return changed(grid, scale=[1e-40] * len(grid.scale))


@breaks("a huge scale")
def huge(_rng, grid):
    return changed(grid, scale=[3e38] * len(grid.scale))


@breaks("a zero point of some hundreds outside")
def zero_point_wide(rng, grid):
    if grid.type not in OTHER_OF_8_BITS:
        return None
    return changed(grid, zero_point=[int(rng.choice([1000, -769, 1792, -1792]))] * len(grid.zero_point))


@breaks("a zero point far outside")
def zero_point_far(rng, grid):
    return changed(grid, zero_point=[int(rng.choice([10**6, -(2**31)]))] * len(grid.zero_point))


@breaks("the other type of 8 bits")
def other_type(_rng, grid):
    return changed(grid, type=OTHER_OF_8_BITS[grid.type]) if grid.type in OTHER_OF_8_BITS else None


@dataclass
class Broken:
    case: Case
    change: str  # the break's name
    place: str  # "input 1" or "output 0" of its operator

    def __str__(self):
        return f"{self.case}: {self.place}, {self.change}"


def is_affine(quantization):
    return np.ndim(quantization.scale) == 1 and len(quantization.scale) > 0


def places(model):
    """{tensor index: "input 0"} of the quantized tensors of the first operator of subgraph 0."""
    found = {}
    for item in model.subgraphs[0].operators[:1]:
        for word, indices in (("input", item.input_indices), ("output", item.output_indices)):
            for place, index in enumerate(indices):
                tensor = model.subgraphs[0].tensors[index] if index >= 0 else None
                if tensor is not None and tensor.quantization is not None and is_affine(tensor.quantization):
                    found.setdefault(int(index), f"{word} {place}")
    return found


def grid_of(tensor):
    q = tensor.quantization
    return Grid(
        str(tensor.type.name).lower(),
        tuple(int(n) for n in tensor.shape),
        [float(s) for s in q.scale],
        [int(z) for z in q.zero_point],
        int(q.quantized_dimension),
    )


def apply(data, index, grid):
    """The model with the grid in place of tensor `index`'s."""
    editor = tq.edit(data)
    tensor = editor.subgraphs[0].tensors[index]
    tensor.type = grid.type  # a constant's bytes stay
    q = tensor.quantization
    q.scale, q.zero_point, q.quantized_dimension = grid.scale, grid.zero_point, grid.quantized_dimension
    return editor.to_bytes()


def cases(operator, kind, seed, names=None):
    """Each break of each quantized tensor of one model of a row."""
    case = differential.shaped(differential.draw(operator, kind, seed, 0, plain=True))
    model = tq.Model(case.model)
    for index, place in places(model).items():
        grid = grid_of(model.subgraphs[0].tensors[index])
        for name, function in BREAKS.items():
            if names and name not in names:
                continue
            broken = function(np.random.default_rng([seed, index]), grid)
            if broken is not None and broken != grid:
                runs = [fed(run, index, broken.type) for run in case.runs]
                yield Broken(dataclasses.replace(case, model=apply(case.model, index, broken), runs=runs), name, place)


def fed(run, index, kind):
    """The same bytes as a tensor of another type takes them."""
    same = kind not in OTHER_OF_8_BITS
    return {i: v if same or i != index else np.asarray(v).view(kind) for i, v in run.items()}


ROWS = [
    row
    for row in generators.rows()
    if row[0] not in generators.GRAPHS and generators.RESOLVERS[row] in generators.NUMERICS.values()
]

# ---- what tq refuses, and LiteRT runs ----

# A scale that is negative or not finite is none: of it LiteRT makes what C leaves undefined, and tq refuses it where it
# reads it.  No process may end.
NO_SCALES = ("a scale below 0", "a scale of NaN", "an infinite scale")
# A scale far from all others gives LiteRT multipliers and float conversions beyond C++'s defined behaviour, or
# infinities: rows of deviations.  tq runs these models all the same.
FAR_SCALES = ("a denormal scale", "a huge scale")
READ_AS_0 = ("a scale for each channel", "a scale of 0", "no scale")
OUTSIDE = ("a zero point outside the type", "a zero point of some hundreds outside")
ZERO_POINTS = ("another zero point", *OUTSIDE)
STATES = ("BIDIRECTIONAL_SEQUENCE_LSTM", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")
RECURRENT = (*STATES, "BIDIRECTIONAL_SEQUENCE_RNN", "RNN", "SVDF", "UNIDIRECTIONAL_SEQUENCE_RNN")
DIVIDE = """
    AVERAGE_POOL_2D CONCATENATION ELU EXP FULLY_CONNECTED GELU LOG LOGISTIC MAX_POOL_2D MEAN MUL QUANTIZE REDUCE_PROD
    RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RSQRT SOFTMAX SQRT SUM TANH TRANSPOSE_CONV
"""


def is_hybrid(broken):
    kind = broken.case.kind
    return kind.startswith(("hybrid", "aux-hybrid", "blockwise")) or kind.endswith("-float32")


def refusal(broken):
    """Why tq need not run what LiteRT runs; None: it must."""
    operator, kind, change, place = broken.case.operator, broken.case.kind, broken.change, broken.place
    if change in READ_AS_0 and operator == "DIV":
        return "LiteRT shifts by more than 31 places"
    if change in READ_AS_0 and place == "output 0" and operator in DIVIDE.split():
        return "LiteRT divides by an output's scale of 0, and converts what comes of it: undefined in C"
    if change in READ_AS_0 and place == "input 0" and (operator == "SUM" or kind == "int16"):
        return "LiteRT's arithmetic overflows"
    if change in READ_AS_0 and (is_hybrid(broken) or operator == "BATCH_MATMUL"):
        return "deviations: each row's scale; and LiteRT reads beyond scales that lie along another dimension"
    if change == READ_AS_0[0] and operator in ("DEPTHWISE_CONV_2D", "NumericVerify"):
        return "LiteRT reads beyond scales that lie along another dimension"
    if change == "another quantized_dimension":
        return "LiteRT takes scales that lie along another dimension for those of channels"
    if operator in STATES and place in ("input 18", "input 19"):
        return "a state's scale must be a power of two"
    if operator in STATES and place == "output 0" and change == "no scale":
        return "LiteRT divides by an output's scale of 0"
    if change in OUTSIDE and place == "output 0":
        return "a fused activation's bounds, cut to the type, are no bounds"
    if change in ZERO_POINTS and kind == "uint8-int16":
        return "INT16 has the zero point 0"
    if change == "a zero point far outside":
        return "LiteRT's arithmetic overflows with zero points beyond some thousands"
    if change == "a huge scale" and operator in (*STATES, "BATCH_MATMUL"):
        return "LiteRT converts an infinite multiplier: undefined in C"
    if change == "the other type of 8 bits" and operator in ("BATCH_MATMUL", "CONV_2D", "FULLY_CONNECTED"):
        return "LiteRT reads past weights of 4 and 2 bits, writes sums of 32 bits, takes several scales for 0 or none"
    if change == "the other type of 8 bits" and operator == "TFLite_Detection_PostProcess":
        return "boxes that end before they begin"
    if change == "the other type of 8 bits" and operator == "MUL":
        return "a fused activation's bounds, cut to the type, are no bounds"
    return None


def is_decided_by_rows(broken):
    """Whether a row of deviations says that LiteRT takes scales for 0, and tq does not."""
    operator = broken.case.operator
    along = broken.change in (READ_AS_0[0], "another quantized_dimension")
    if operator in ("TFLite_Detection_PostProcess", "EQUAL", "NOT_EQUAL"):
        return broken.change in READ_AS_0  # leaves rows unwritten; INT16 without a scale has other answers each time
    if operator == "ADD" and broken.case.kind == "int16" and broken.place == "input 0" and broken.change == "no scale":
        return True  # LiteRT sets no bounds of the activation then, and reads them (tflite/kernels/add.cc)
    if operator == "REDUCE_PROD" and broken.place == "input 0":  # optimized, of one element: copies the values
        return broken.change in READ_AS_0
    if broken.change == "the other type of 8 bits" and operator == "REDUCE_PROD" and broken.place == "output 0":
        return True  # of one element: answers differ from run to run
    if broken.change == "the other type of 8 bits" and broken.case.kind == "int8-sparse":
        return True  # LiteRT reads the stored weights as if none were left out, and past their end
    if operator == "QUANTIZE" and broken.change == "a zero point far outside":
        return True  # LiteRT's differences from zero points of INT32 wrap
    if operator == "TRANSPOSE_CONV" and is_hybrid(broken):  # reads beyond scales that lie along another dimension
        return along
    return along and (operator == "BATCH_MATMUL" or (operator in RECURRENT and is_hybrid(broken)))


def ask(broken, who, workers=1):
    questions = (differential.question(b.case.model, who, b.case.runs, b.case.shapes) for b in broken)
    return list(oracle.ask("tensors", questions, workers))


def is_run(answer):
    return not isinstance(answer, oracle.Refusal | oracle.Abort)


def compare(broken, numerics, workers=1):
    """[(Broken, LiteRT's answer, text or None)]: text says what tq does otherwise than LiteRT where LiteRT runs, unless
    `refusal` or `is_decided_by_rows` says why it does."""
    broken = list(broken)
    theirs = ask(broken, generators.NUMERICS[numerics], workers)
    mine = ask(broken, differential.candidate_of(numerics), workers)
    return [(b, their, wrong(b, my, their, numerics)) for b, my, their in zip(broken, mine, theirs, strict=True)]


def by_rows(broken, mine, theirs, numerics):
    """Whether rows of deviations say what tq does."""
    try:
        return (
            differential.compare_runs(tq.Model(broken.case.model), broken.case.runs, mine, theirs, numerics)[0] is None
        )
    except (ArithmeticError, IndexError, ValueError):
        return False


def wrong(broken, mine, theirs, numerics):
    if isinstance(mine, oracle.Abort):
        return f"tq's process ended with code {mine.code}"
    if not is_run(theirs) or is_decided_by_rows(broken) or broken.change in NO_SCALES:
        return None
    if isinstance(mine, oracle.Refusal):
        return None if refusal(broken) else f"tq refuses to {mine.stage}: {mine.text}"
    if broken.change in FAR_SCALES:
        return None
    if broken.change not in READ_AS_0:
        found, _ = differential.compare_runs(tq.Model(broken.case.model), broken.case.runs, mine, theirs, numerics)
        return found and found[2]
    # first without the rows of deviations, whose oracles divide by scales
    pairs = ((a[index], b[index]) for a, b in zip(mine, theirs, strict=True) for index in b)
    texts = (differential.difference(a, b, differential.slack_of([b])) for a, b in pairs)
    text = next(filter(None, texts), None)
    return text and (text if not by_rows(broken, mine, theirs, numerics) else None)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--types", nargs="+")
    parser.add_argument("--numerics", nargs="+", default=list(generators.NUMERICS))
    parser.add_argument("--breaks", nargs="+", choices=list(BREAKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--litert", action="store_true", help="what LiteRT does, in place of what tq does not")
    parser.add_argument("--show", type=int, default=1)
    options = parser.parse_args(arguments)
    rows = [row for name in options.operators or [None] for row in generators.rows(name, options.types)]
    rows = [row for row in rows if row in ROWS]
    failures = 0
    for row in rows:
        seeds = range(options.first, options.first + options.seeds)
        broken = [b for seed in seeds for b in cases(*row, seed, options.breaks)]
        for numerics in options.numerics if broken else ():
            found = {}
            if numerics == "reference" and generators.RESOLVERS[row] != generators.REFERENCE:
                continue
            for b, theirs, text in compare(broken, numerics, 2):
                if options.litert:
                    text = "runs" if is_run(theirs) else str(theirs)
                if text:
                    found.setdefault((b.place, b.change, text if options.litert else text[:60]), []).append((b, text))
            for (place, change, _), those in sorted(found.items(), key=lambda item: item[0]):
                print(f"{row[0]} {row[1]} {numerics}: {place}, {change}: {len(those)}", flush=True)
                for b, text in those[: options.show]:
                    print(f"    {b.case.seed}: {text}", flush=True)
            failures += len(found)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
