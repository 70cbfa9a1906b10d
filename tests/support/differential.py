# SPDX-License-Identifier: Apache-2.0
"""tq against LiteRT on random models of one operator.

    python tests/support/differential.py CONV_2D --types int8 --cases 1000 --seed 3     every mismatch's first lines
    python tests/support/differential.py CONV_2D --types int8 --seed 3 --case 17        one case, in full
    python tests/support/differential.py ADD --numerics xnnpack                    tq's xnnpack against LiteRT's BUILTIN
    python tests/support/differential.py PARTITION --numerics xnnpack --whole      the outputs, of whole partitions
    python tests/support/differential.py ADD --litert                              how many models LiteRT's kernels run
    ... --write FOLDER                                                          the models and inputs that mismatch

The generators are in generators.  Of each model every operator's outputs and every variable are compared, after
each invoke: integers bit for bit; floats bit for bit or within TOLERANCES of the largest finite value that the tensor
has in any invoke, where NaN equals NaN; shapes and types.  Where LiteRT refuses a model tq may do as it likes; where
LiteRT's process ends, tq's must not.  Where LiteRT is known not to compute what an operator means, a row of
deviations says so, and tq's result is compared with what that row computes:

    deviations.find(node) -> None or a row with
        row.outputs(node) -> for each output an array, a pair (array, largest difference), or None: not said

`node` is a `Node`: name, options (a dict), inputs and outputs (`Operand`s, None where left out).
"""

import argparse
import dataclasses
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.modules["differential"] = sys.modules["__main__"]  # what the generators import is this module
    import built  # noqa: F401

import deviations
import generators
import oracle
from generators.draft import Draft

import tq

# The largest difference of floats that is none, in the largest value of a tensor.  LiteRT's optimized kernels sum in
# orders of their own, and have other exponentials.
TOLERANCES = {"reference": 1e-6, "optimized": 5e-5, "xnnpack": 1e-6}
TOLERANCE = TOLERANCES["reference"]
TOLERANCE_HALF = 2.0**-9
SMALLEST = 1e-30  # tensors that stay below count as if they came so far: what LSTMs multiply below 1e-35 is 0
TOLERANCE_CHAINED = 2e-4  # what one operator may add, many that follow may magnify

# ---- a case ----


def draw(operator, kind, seed, number, plain=False):
    """Case `number` of a row for a seed; plain: without infinities, NaN and denormals among floats."""
    draft = Draft(seed, operator, kind, number, name=operator)
    draft.plain = plain
    generators.ROWS[operator, kind](draft, kind)
    return draft.case(operator, kind, seed, number)


def shaped(case):
    """The same case with the shapes of outputs in the file, as converters write them: XNNPACK refuses nodes without."""
    interpreter = tq.Interpreter(model_content=case.model)
    try:
        interpreter.allocate_tensors()
    except tq.RunError:
        return case
    editor = tq.edit(case.model)
    details = interpreter.get_tensor_details()
    for item in editor.operators:
        for tensor in item.outputs:
            if tensor is not None and not tensor.shape:
                tensor.shape = details[tensor.index]["shape"]
    return dataclasses.replace(case, model=editor.to_bytes())


def compared(model):
    """Indices of the tensors of subgraph 0 that operators write, or that keep their values.  Of a resource there is
    nothing to compare but a number, which is the runtime's own."""
    graph = model.subgraphs[0]
    found = {i for item in graph.operators for i in item.output_indices if i >= 0}
    found |= {tensor.index for tensor in graph.tensors if tensor.is_variable}
    return sorted(i for i in found if graph.tensors[i].type.name not in ("RESOURCE", "VARIANT"))


def question(source, resolver, runs, shapes=None, indices=None, preserve=True):
    """For oracle.ask("tensors", ...)."""
    return (source, resolver, runs, shapes or {}, compared(tq.Model(source)) if indices is None else indices, preserve)


def outputs_of(model):
    """Indices of the outputs of subgraph 0 that operators write: all that there is without preserved tensors."""
    return sorted({int(i) for i in model.subgraphs[0].output_indices} & set(compared(model)))


# ---- comparing ----


@dataclass
class Operand:
    """A tensor of a node, as a deviation sees it.  scale: float32 array, empty without quantization."""

    type: str
    shape: tuple
    scale: np.ndarray
    zero_point: np.ndarray
    axis: int
    value: np.ndarray | None  # None: not known; of an output, what LiteRT made of it
    is_sparse: bool = False  # stored so; value is dense
    is_read: bool = True  # by another operator, or by who runs the model


@dataclass
class Node:
    name: str
    options: dict
    inputs: list
    outputs: list
    numerics: str = "reference"  # whose kernels LiteRT ran it with


def operand(tensor, values):
    if tensor is None:
        return None
    value = values.get(tensor.index)
    if value is None and tensor.is_constant:
        value = tensor.data if tensor.sparsity is None else tensor.densify()
    q = tensor.quantization
    shape = tuple(tensor.shape) if value is None or isinstance(value, oracle.Refusal) else value.shape
    kind = str(tensor.dtype)
    given = str(getattr(value, "dtype", kind))
    if {kind, given} <= {"int8", "uint8"}:
        kind = given  # LiteRT gives some outputs another type than the file's
    return Operand(
        kind,
        shape,
        np.float32([] if q is None else q.scale),
        np.int64([] if q is None else q.zero_point),
        0 if q is None else q.quantized_dimension,
        None if isinstance(value, oracle.Refusal) else value,
        tensor.sparsity is not None,
        bool(tensor.consumers) or tensor.index in tensor.subgraph.output_indices,
    )


def node(item, values, numerics="reference"):
    """Operator `item` (a tq.Operator) as a Node.  values: index to array."""
    return Node(
        item.name,
        dict(item.options or {}),
        [operand(tensor, values) for tensor in item.inputs],
        [operand(tensor, values) for tensor in item.outputs],
        numerics,
    )


def slack_of(values, tolerance=TOLERANCE):
    """The largest difference that is none for a tensor that has these values in turn; None for integers."""
    values = [np.asarray(v) for v in values if not isinstance(v, oracle.Refusal)]
    values = [v for v in values if v.dtype.kind in "fcV"]
    if not values:
        return None
    with np.errstate(invalid="ignore"):  # signalling NaN
        wide = [v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in values]
    return tolerance * max(np.abs(v[np.isfinite(v)]).max(initial=SMALLEST) for v in wide)


def difference(mine, theirs, slack=None):
    """The difference of two arrays, as text; None: they agree.  slack: the greatest difference that counts as none."""
    if isinstance(theirs, oracle.Refusal):
        return None  # LiteRT cannot read it
    if isinstance(mine, oracle.Refusal):
        return f"tq cannot read it: {mine.text}"
    if mine.shape != theirs.shape:
        return f"shape {mine.shape}, LiteRT {theirs.shape}"
    if mine.dtype != theirs.dtype and not {mine.dtype.kind, theirs.dtype.kind} <= set("OSU"):
        return f"dtype {mine.dtype}, LiteRT {theirs.dtype}"
    if mine.dtype.kind in "OSU":
        wrong = np.array([a != b for a, b in zip(mine.reshape(-1), theirs.reshape(-1), strict=True)], bool)
        wrong = wrong.reshape(mine.shape)
    elif mine.dtype.kind in "iub":
        with np.errstate(over="ignore"):
            wrong = mine != theirs if slack is None else np.abs(mine.astype(float) - theirs.astype(float)) > slack
    else:
        wide = np.complex128 if mine.dtype.kind == "c" else np.float64
        slack = slack_of([theirs]) if slack is None else slack
        with np.errstate(invalid="ignore", over="ignore"):
            a, b = mine.astype(wide), theirs.astype(wide)
            near = (a == b) | (np.abs(a - b) <= slack)
        wrong = ~(near | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    text = (
        f"{int(wrong.sum())} of {wrong.size} elements differ, first at {list(at)}: {mine[at]!r}, LiteRT {theirs[at]!r}"
    )
    if mine.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            most = np.nanmax(np.abs(mine.astype(float) - theirs.astype(float))[wrong], initial=0)
        text += f"; largest difference {most:g}"
    return text


def backends(model, numerics):
    """The kernel set of each operator of subgraph 0, as tq predicts LiteRT's choice."""
    return [backend for backend, _, _ in tq.Interpreter(model=model, numerics=numerics)._backends()]


def slack_of_node(of, theirs):
    """The largest difference that is none where LiteRT's own steps are not tq's: of a sum or mean in another order, a
    part of the sum of magnitudes; of float16 beside kernels that are not the reference's, some units in the last place
    of what is read or written.  None: as everywhere."""
    if of.numerics != "reference" and theirs.dtype == np.float16:
        halves = [theirs, *(o.value for o in of.inputs if o is not None and o.value is not None)]
        halves = [np.abs(half[np.isfinite(half)]) for half in halves if half.dtype == np.float16]
        return TOLERANCE_HALF * float(max(half.max(initial=0) for half in halves))
    if of.numerics == "reference" or of.name not in ("SUM", "MEAN") or theirs.dtype.kind != "f":
        return None
    values, axes = (operand.value for operand in of.inputs[:2])
    if values is None or axes is None or not values.ndim:
        return None
    sizes = np.abs(values.astype(np.float64))
    total = sizes.sum(axis=tuple({int(axis) % values.ndim for axis in axes.reshape(-1)}))
    return 4 * TOLERANCE * float(total.max(initial=0)) * (total.size / max(sizes.size, 1) if of.name == "MEAN" else 1)


# Operators of floats whose outputs differ by no more than their inputs do.
STEADY = """
    ABS AVERAGE_POOL_2D CONCATENATION HARD_SWISH LEAKY_RELU LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM PAD PADV2 RELU
    RELU6 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SLICE SPLIT SQUEEZE STRIDED_SLICE TANH TRANSPOSE
"""


PRODUCTS = ("BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def largest(tensor, theirs):
    """The largest finite number of a tensor in any invoke."""
    values = [run[tensor.index] for run in theirs] if tensor.index in theirs[0] else [tensor.data]
    known = [np.abs(v[np.isfinite(v)]).max(initial=0) for v in values if getattr(v, "size", 0)]
    return float(max(known, default=0))


def handed_on(item, slacks, theirs, numerics):
    """By how much a float output differs because the inputs do, or because products are added in another order.

    Sums may be far smaller than what they add up."""
    parts = [slacks.get(index) or 0 for index in item.input_indices]
    if item.name in ("ADD", "SUB"):
        return sum(parts)
    if item.name == "SQUARED_DIFFERENCE":
        return sum(parts) * (2 * largest(item.outputs[0], theirs) ** 0.5 + sum(parts))
    if item.name == "MUL":
        sizes = [largest(tensor, theirs) for tensor in item.inputs]
        return parts[0] * sizes[1] + parts[1] * sizes[0]
    if item.name in PRODUCTS and numerics == "optimized" and item.inputs[1].type.name == "FLOAT32":
        x, w = item.inputs[:2]
        terms = np.prod(w.shape) // max(item.outputs[0].shape[-1:], default=1)
        return float(terms) * 2.0**-24 * largest(x, theirs) * largest(w, theirs)
    return 1.2 * max(parts, default=0) if item.name in STEADY.split() else 0  # HARD_SWISH rises by up to 1.13


def slack_of_quantized(of, mine):
    """The slack of products whose floats become integers on the way: a float that differs by a unit in the last place
    may become another integer.  mine: the floats that tq had, or None."""
    if of.name not in PRODUCTS or mine is None:
        return 0.0
    x, weights = of.inputs[:2]
    if x.type != "float32" or not len(weights.scale) or weights.value is None or weights.value.dtype.kind not in "iu":
        return 0.0
    moved = int((mine != x.value).sum())
    step = (max(float(x.value.max(initial=0)), 0) - min(float(x.value.min(initial=0)), 0)) / 127
    return moved * step * float(np.abs(weights.value.astype(float)).max(initial=0)) * float(weights.scale.max())


def is_folded(item, numerics):
    """Whether LiteRT's delegate computes the operator once, into memory of its own: the tensor is never written."""
    return numerics == "xnnpack" and item.name in ("DEQUANTIZE", "DENSIFY") and item.inputs[0].is_constant


def slacks_of(model, theirs, whose, variables, numerics, tolerance):
    """{tensor index: the largest difference of floats that is none}."""
    kept = {tensor.index for tensor in variables}
    wanted = {
        index: TOLERANCES[whose[item.index]]
        for item in model.subgraphs[0].operators
        for index in (*item.output_indices, *kept.intersection(item.input_indices))
    }
    slacks = {
        index: slack_of([b[index] for b in theirs], wanted.get(index, TOLERANCE) if tolerance is None else tolerance)
        for index in theirs[0]
    }
    for item in model.subgraphs[0].operators:
        index = next(iter(item.output_indices), None)
        if slacks.get(index) is not None:
            slacks[index] = max(slacks[index], handed_on(item, slacks, theirs, numerics))
    return slacks


def compare_outputs(item, of, means, a, b, slacks, strayed):
    """The first output of an operator in which tq is wrong, as (tensor index, text), or None.

    of: its Node with LiteRT's values.  means: what a row of deviations says of each output; None: LiteRT's.
    a, b: tq's tensors and LiteRT's.  Outputs in which LiteRT strays from what is meant join `strayed`."""
    for index, meant in zip(item.output_indices, means, strict=True):
        if index not in a:
            continue
        if meant is deviations.UNPROMISED:
            strayed.add(index)
            continue
        usual = None if isinstance(b[index], oracle.Refusal) else slack_of_node(of, b[index])
        usual = max(filter(None, (usual, slacks.get(index))), default=slacks.get(index))
        meant, slack = meant if isinstance(meant, tuple) else (meant, usual)
        right = b[index] if meant is None else meant
        moved = slack and slack_of_quantized(of, a.get(item.input_indices[0]))
        if moved and difference(a[index], right, slack):
            strayed.add(index)
            slack += moved
        if wrong := difference(a[index], right, slack):
            return index, wrong
        if meant is not None and difference(a[index], b[index], slacks.get(index)):
            strayed.add(index)
    return None


def compare_runs(model, runs, mine, theirs, numerics="reference", tolerance=None):
    """The first difference as (run, tensor index or None, text), the deviations met, or None and these.

    mine, theirs: answers of oracle.ask("tensors"); theirs is not a Refusal or an Abort."""
    met = set()
    if isinstance(mine, oracle.Abort):
        return (0, None, f"tq's process ended with code {mine.code}"), met
    if isinstance(mine, oracle.Refusal):
        return (0, None, f"tq refuses to {mine.stage}: {mine.text}"), met
    operators, tensors = model.subgraphs[0].operators, model.subgraphs[0].tensors
    variables = [tensor for tensor in tensors if tensor.is_variable and tensor.type.name != "RESOURCE"]
    whose = backends(model, numerics)
    slacks = slacks_of(model, theirs, whose, variables, numerics, tolerance)
    for run, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        known = {**runs[run], **b}
        strayed = set()  # tensors in which LiteRT deviates, and what is computed from them
        for item in operators:
            if is_folded(item, numerics):
                known.update((index, a[index]) for index in item.output_indices if index in a)
                continue
            if not strayed.isdisjoint(item.input_indices):
                strayed.update(item.output_indices)
                continue
            of, means = node(item, known, whose[item.index]), [None] * len(item.outputs)
            if row := deviations.find(of):
                met.add(row)
                theirs_out = {index: b[index] for index in item.output_indices if index in b}
                means = row.outputs(node(item, {**runs[run], **a, **theirs_out}, whose[item.index])) or means
            if wrong := compare_outputs(item, of, means, a, b, slacks, strayed):
                return (run, *wrong), met
        if strayed:
            return None, met  # what variables hold from here on is not known
        for tensor in variables:
            if tensor.index not in b:  # not asked for: the operator was cut out
                continue
            if wrong := difference(a[tensor.index], b[tensor.index], slacks.get(tensor.index)):
                return (run, tensor.index, wrong), met
    return None, met


def met_alone(case, numerics, resolver):
    """The deviations met where every operator is computed by itself."""
    model = tq.Model(case.model)
    mine, theirs = (
        next(oracle.ask("tensors", [question(case.model, who, case.runs, case.shapes)]))
        for who in (candidate_of(numerics), resolver)
    )
    answered = isinstance(mine, list) and isinstance(theirs, list)
    return compare_runs(model, case.runs, mine, theirs, numerics)[1] if answered else set()


# ---- many cases ----


@dataclass
class Outcome:
    """The outcomes of the cases of a row."""

    operator: str
    kind: str
    agree: int = 0
    refused: list = field(default_factory=list)  # (case, LiteRT's Refusal)
    aborted: list = field(default_factory=list)  # (case, LiteRT's Abort)
    deviating: dict = field(default_factory=dict)  # row of deviations: cases
    mismatches: list = field(default_factory=list)  # (case, text)
    ran_more: int = 0  # refused by LiteRT, run by tq

    @property
    def accepted(self):
        return self.agree + len(self.mismatches)

    def __str__(self):
        text = f"{self.operator} {self.kind}: {self.agree} agree, {len(self.mismatches)} mismatch"
        for what, count in (("refused", len(self.refused)), ("aborted", len(self.aborted))):
            text += f", LiteRT {what} {count}" if count else ""
        for row, count in self.deviating.items():
            text += f", {count} deviate: {row}"
        return text


def _alone(cases, outcome, workers, resolver):
    """LiteRT alone."""
    answers = oracle.ask("tensors", (question(c.model, resolver, c.runs, c.shapes) for c in cases), workers)
    for case, answer in zip(cases, answers, strict=True):
        if isinstance(answer, oracle.Refusal):
            outcome.refused.append((case, answer))
        elif isinstance(answer, oracle.Abort):
            outcome.aborted.append((case, answer))
        else:
            outcome.agree += 1


def resolver_of(operator, kind, numerics):
    """The resolver of LiteRT that a row's models are compared with."""
    resolver = generators.RESOLVERS[operator, kind]
    has_others = resolver == generators.REFERENCE or (resolver == generators.OPTIMIZED and numerics != "reference")
    return generators.NUMERICS[numerics] if has_others else resolver


def candidate_of(numerics):
    return "TQ" if numerics == "reference" else f"TQ {numerics}"


def compare(
    operator,
    kind,
    cases=30,
    seed=0,
    workers=2,
    first=0,
    litert_only=False,
    resolver=None,
    candidate=None,
    numerics="reference",
    tolerance=None,
    whole=False,
):
    """Draws the cases [first, first + cases) of a row and compares them: an Outcome.

    numerics: tq's, beside LiteRT's resolver of that name.  resolver, candidate: in place of these.
    tolerance: in place of the numerics' own.  whole: only the models' outputs, where no tensors are preserved: LiteRT's
    delegate then has whole partitions of a model, not every operator by itself."""
    outcome = Outcome(operator, kind)
    resolver = resolver or resolver_of(operator, kind, numerics)
    candidate = candidate or candidate_of(numerics)
    plain = numerics != "reference" and operator != "QUANTIZE"  # whose rows of deviations say what becomes of them
    if operator == "PARTITION" and tolerance is None:
        tolerance = TOLERANCE_CHAINED
    drawn = [draw(operator, kind, seed, number, plain) for number in range(first, first + cases)]
    if numerics != "reference":
        drawn = [shaped(case) for case in drawn]
    if litert_only:
        _alone(drawn, outcome, workers, resolver)
        return outcome
    indices = [(outputs_of if whole else compared)(tq.Model(case.model)) for case in drawn]

    def ask(who, processes):
        parts = zip(drawn, indices, strict=True)
        questions = (question(case.model, who, case.runs, case.shapes, wanted, not whole) for case, wanted in parts)
        return oracle.ask("tensors", questions, processes)

    answers = zip(drawn, ask(resolver, workers), ask(candidate, max(workers // 2, 1)), strict=True)
    for case, theirs, mine in answers:
        if isinstance(theirs, oracle.Refusal | oracle.Abort):
            (outcome.refused if isinstance(theirs, oracle.Refusal) else outcome.aborted).append((case, theirs))
            if isinstance(mine, oracle.Abort):
                outcome.mismatches.append(
                    (case, f"tq's process ended with code {mine.code}; LiteRT's answer: {theirs}")
                )
            outcome.ran_more += not isinstance(mine, oracle.Abort | oracle.Refusal)
            continue
        model = tq.Model(case.model)
        wrong, met = compare_runs(model, case.runs, mine, theirs, numerics, tolerance)
        if wrong and whole:
            met = met_alone(case, numerics, resolver)
            wrong = None if met else wrong
        for row in met:
            outcome.deviating[row] = outcome.deviating.get(row, 0) + 1
        if wrong:
            run, index, text = wrong
            if index is not None:
                tensor = model.subgraphs[0].tensors[index]
                text = f"invoke {run}, tensor {index} {tensor.name!r} {tensor.type.name}: {text}"
            outcome.mismatches.append((case, text))
        else:
            outcome.agree += 1
    return outcome


def explain(case, text, full=True):
    """A case and what is wrong with it, for people."""
    if not full:
        return f"{case}\n    {text}"
    model = tq.Model(case.model)
    lines = [str(case), f"    {text}", str(model)]
    for item in model.subgraphs[0].operators:
        lines.append(f"{item.name}: {item.options}")
    for tensor in model.subgraphs[0].tensors:
        q = tensor.quantization
        if q is not None and len(q.scale):
            lines.append(
                f"tensor {tensor.index}: scale {q.scale}, zero_point {q.zero_point}, axis {q.quantized_dimension}"
            )
    with np.printoptions(threshold=60, precision=9):
        for run, values in enumerate(case.runs):
            lines += [f"invoke {run}, tensor {index} {v.dtype} {v.shape}: {v}" for index, v in values.items()]
        lines += [f"tensor {t.index} constant: {t.data}" for t in model.subgraphs[0].tensors if t.is_constant]
    return "\n".join(lines)


def write(case, text, folder):
    """Writes the model, the inputs and the explanation beside each other; returns the model's path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case.operator}_{case.kind}_{case.seed}_{case.number}.tflite".replace("/", "-")
    path.write_bytes(case.model)
    path.with_suffix(".txt").write_text(explain(case, text) + "\n")
    for run, values in enumerate(case.runs):
        plain = {f"tensor_{index}": value for index, value in values.items() if value.dtype.kind != "O"}
        np.savez(path.with_suffix(f".{run}.npz"), **plain)
    return path


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("operators", nargs="*", help="names; none: all that have a generator")
    parser.add_argument("--types", nargs="+", help="kinds of the generators, such as int8")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one, in full")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--litert", action="store_true", help="ask only LiteRT")
    parser.add_argument("--resolver", help="LiteRT's; its reference kernels by themselves")
    parser.add_argument("--candidate", help="another resolver, in place of tq")
    parser.add_argument("--numerics", choices=list(generators.NUMERICS), default="reference")
    parser.add_argument("--tolerance", type=float, help="of floats, in place of the numerics' own")
    parser.add_argument("--whole", action="store_true", help="only outputs: no tensors are preserved")
    parser.add_argument("--show", type=int, default=3, help="so many mismatches and refusals a row")
    parser.add_argument("--write", metavar="FOLDER")
    parser.add_argument("--list", action="store_true", help="the rows that there are")
    options = parser.parse_args(arguments)
    rows = [row for name in options.operators or [None] for row in generators.rows(name, options.types)]
    if not rows:
        parser.error(f"no generator for {options.operators} {options.types or ''}")
    if options.list:
        print("\n".join(" ".join(row) for row in rows))
        return 0
    failures = 0
    known = {*tq._core.operators()[0], *tq._core.operators()[1], *generators.GRAPHS}
    if not options.litert:
        print("not in tq's table:", *sorted({operator for operator, _ in rows} - known))
        rows = [row for row in rows if row[0] in known]
    for operator, kind in rows:
        first, count = (0, options.cases) if options.case is None else (options.case, 1)
        outcome = compare(
            operator,
            kind,
            count,
            options.seed,
            options.workers,
            first,
            options.litert,
            options.resolver,
            options.candidate,
            options.numerics,
            options.tolerance,
            options.whole,
        )
        failures += len(outcome.mismatches)
        few = options.litert and outcome.agree < 0.9 * count
        print(outcome, "  TOO FEW ARE VALID" if few else "", flush=True)
        full = options.case is not None
        for case, text in outcome.mismatches[: options.show]:
            print(explain(case, text, full))
        if options.litert or full:
            for case, answer in (outcome.refused + outcome.aborted)[: options.show]:
                print(explain(case, f"LiteRT: {answer}", full))
            if full and outcome.agree:
                print(explain(draw(operator, kind, options.seed, first), "agrees"))
        for case, text in outcome.mismatches if options.write else []:
            write(case, text, options.write)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
