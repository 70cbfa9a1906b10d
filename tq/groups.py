# SPDX-License-Identifier: Apache-2.0
"""Which operators of a subgraph become integer ones, and the parameters of their activations.

Tensors that must share parameters form a group; a group's range is that of all its tensors, or is fixed by the kernel
that writes it, or given by the caller.  Constants belong to no group.  Operators whose kernel could not compute what
they mean with the parameters that come out (tq/integer.py: limits) are left out, and the groups are made anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tq import _core, clipping, recurrent
from tq.agreement import Key
from tq.carried import CALLING
from tq.edit_graph import SubgraphPart
from tq.edit_operator import OperatorPart
from tq.edit_tensor import TensorPart
from tq.integer import CENTERED, FREE, INSTEAD, INTEGER, LIMITS, READS, RELATIVE, SAME, VARIABLES, Output, Scales
from tq.ranges import Parameters, Ranges

_SHARE, _IDLE = (SAME, CENTERED), (SAME, CENTERED, READS)
# What float kernels make of fused activations that integer ones lack, too: most ignore TANH and SIGN_BIT, these refuse.
_REFUSING = ("CONCATENATION", "FULLY_CONNECTED", "L2_NORMALIZATION")
_ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
# Their constants are bounds: one beyond what is computed saturates, and bounds nothing.
_BOUNDING = ("MINIMUM", "MAXIMUM")
# Numbers beyond stand for infinities: bounds and paddings of constants, masks of activations.
_INFINITE = 1e30
# The range with which a constant's codes are the steps in which kernels compare.
_LEAST_COMPARED = 255 / 256


def is_float(tensor: TensorPart | None) -> bool:
    return tensor is not None and int(tensor.type) == 0


def is_constant_float(tensor: TensorPart | None) -> bool:
    return tensor is not None and is_float(tensor) and tensor.is_constant and not tensor.is_sparse


class Groups:
    """Of the operators that a subgraph's integer ones are chosen from.

    activations: "int8" or "int16".
    """

    def __init__(self, graph: SubgraphPart, ranges: Ranges, activations: str) -> None:
        self.graph = graph
        self.ranges = ranges
        self.type = activations
        self.least, self.most = LIMITS[activations]
        self.operators: dict[OperatorPart, int] = {}  # those chosen, with their place
        self.parents: dict[TensorPart, TensorPart] = {}
        self.names: dict[OperatorPart, str] = {}
        self._ends: dict[TensorPart, float] = {}
        self.passing: dict[TensorPart, clipping.Interval] = {}  # what of a tensor's numbers its readers let through
        self.producers = {t: op for op in graph.operators for t in op.outputs if t is not None}
        self.variables: dict[OperatorPart, Key] = {}  # of those that touch one: tq/variables.py
        # Ends of the subgraph, and of operators that call others, that may be codes; and which may no longer.
        self.calls: dict[OperatorPart | SubgraphPart, dict[tuple[str, int], Key]] = {}
        self.loose: set[Key] = set()
        # Of variables and such ends, which concern other subgraphs too: tq/agreement.py.
        self.spans: dict[Key, tuple[float, float]] = {}  # the range that all need
        self.agreed: dict[Key, Parameters] = {}
        self.held: dict[TensorPart, list[Key]] = {}  # those of a group
        self.readers: dict[TensorPart, list[OperatorPart]] = {}
        for op in graph.operators:
            for tensor in dict.fromkeys(op.inputs):
                if tensor is not None:
                    self.readers.setdefault(tensor, []).append(op)

    def choose(self, wanted: Iterable[OperatorPart]) -> None:
        """Finds those of the operators that become integer ones, and the parameters of the groups."""
        known = set(wanted)
        for place, op in enumerate(self.graph.operators):
            if op in known and self._can(op):
                self.operators[op] = place
        self.settle()

    def settle(self) -> None:
        """Parameters of what is chosen, after which some of it may be no longer."""
        while self._settle():
            pass

    # -- which

    def _rule(self, op: OperatorPart) -> Output | None:
        row = INTEGER.get(self._name(op))
        return None if row is None else row.int8 if self.type == "int8" else row.int16

    def _name(self, op: OperatorPart) -> str:
        """Of a builtin operator."""
        if op not in self.names:
            self.names[op] = op.builtin_name or ""
        return self.names[op]

    def _places(self, op: OperatorPart) -> list[int]:
        """Where it reads activations, or constants that are quantized like them."""
        row, inputs = INTEGER[self._name(op)], op.inputs
        are_codes = self.type != "int8" or self._has_weights(op)  # int8 beside int16 too
        skipped = (row.weights, row.bias) if are_codes else (row.bias,)
        wanted = row.data if row.data is not None else [i for i in range(len(inputs)) if i not in skipped]
        if self._name(op) in CALLING:
            wanted = [index for side, index in self.tight(op) if side == "inputs"]
        return [i for i in wanted if i < len(inputs) and is_float(inputs[i])]

    def _has_weights(self, op: OperatorPart) -> bool:
        """Constant ones.  Those that are computed are activations."""
        row, inputs = INTEGER[self._name(op)], op.inputs
        return row.weights is not None and row.weights < len(inputs) and is_constant_float(inputs[row.weights])

    def _data(self, op: OperatorPart) -> list[TensorPart]:
        """The activations that it reads."""
        inputs = op.inputs
        read = [inputs[i] for i in self._places(op)]
        return [tensor for tensor in read if tensor is not None and not tensor.is_constant]

    def _outputs(self, op: OperatorPart) -> list[TensorPart]:
        found = [tensor for tensor in op.outputs if tensor is not None and is_float(tensor)]
        if self._name(op) in CALLING:
            ends = [op.outputs[index] for side, index in self.tight(op) if side == "outputs"]
            return [tensor for tensor in found if tensor in ends]
        return found

    def _can(self, op: OperatorPart) -> bool:
        rule = self._rule(op)
        if rule is None or self._name(op) == "SUM":
            return False
        if INTEGER[self._name(op)].recurrent and not recurrent.can(op, self):
            return False
        activation = getattr(op.options.get("fused_activation_function"), "name", "NONE")
        if activation not in _ACTIVATIONS and self._name(op) in _REFUSING:
            return False
        inputs, outputs, places = op.inputs, self._outputs(op), self._places(op)
        read = [inputs[i] for i in places]
        if self._name(op) in INSTEAD and 0 not in places:
            return False
        if self._name(op) in CALLING:
            return bool(self.tight(op))
        if self._name(op) in VARIABLES:
            return op in self.variables and bool(outputs or read)
        if not read or bool(outputs) == (rule == READS) or not self._can_weigh(op):
            return False
        if self._name(op) == "DIV" and not self._divides_by_numbers(op):
            return False
        narrow = INTEGER[self._name(op)].narrow
        if narrow is not None and self.type != "int8" and not any(is_constant_float(t) for t in inputs[narrow:]):
            return False
        return not any(t is not None and (t.is_variable or t.is_sparse) for t in (*read, *outputs))

    def _can_weigh(self, op: OperatorPart) -> bool:
        row, inputs = INTEGER[self._name(op)], op.inputs
        if row.weights is None:
            return True
        if all(place == row.weights for place in self._places(op)) or not all(t.shape for t in self._outputs(op)):
            return False
        weights = inputs[row.weights] if row.weights < len(inputs) else None
        bias = inputs[row.bias] if row.bias is not None and row.bias < len(inputs) else None
        if weights is None or not is_float(weights) or (bias is not None and not is_constant_float(bias)):
            return False
        if not weights.is_constant and self.type != "int8":
            return self.ranges.knows(weights) and not self._is_infinite(weights) and not weights.is_variable
        return self._name(op) != "FULLY_CONNECTED" or len(weights.shape) == 2

    def _divides_by_numbers(self, op: OperatorPart) -> bool:
        divisor = op.inputs[1] if len(op.inputs) > 1 else None
        data = divisor.data if divisor is not None and is_constant_float(divisor) else None
        if data is None:
            return False
        with np.errstate(divide="ignore", over="ignore"):
            return bool(np.isfinite(data).all() and np.isfinite(np.float32(1) / data).all())

    # -- groups

    def _root(self, tensor: TensorPart) -> TensorPart:
        parents = self.parents
        while parents.setdefault(tensor, tensor) != tensor:
            above = parents[tensor]
            parents[tensor] = parents.setdefault(above, above)  # shortens the way for the next time
            tensor = above
        return tensor

    def _settle(self) -> bool:
        """Groups and parameters.  True: operators were left out for them, and it is to be done anew."""
        count = len(self.operators)
        self._group()
        self._drop_idle()
        if len(self.operators) == count:
            self._choose()
            self._drop_limited()
        return len(self.operators) < count

    def _group(self) -> None:
        self.parents.clear()
        centered = []
        for op in self.operators:
            rule, data = self._rule(op), self._data(op)
            tensors = [*data, *self._outputs(op)]
            for tensor in tensors:
                self._root(tensor)
            if rule in _SHARE:
                for tensor in tensors[1:]:
                    self.parents[self._root(tensor)] = self._root(tensors[0])
            if rule == CENTERED:
                centered.append(tensors[0])
            row = INTEGER[self._name(op)]
            if row.weights is not None and row.weights in self._places(op):
                centered.append(op.inputs[row.weights])  # type: ignore[arg-type]
        self._group_bound()
        self.centered = {self._root(tensor) for tensor in centered}

    def _group_bound(self) -> None:
        """What one variable holds, or one place hands on, in this subgraph."""
        self.held.clear()
        members: dict[Key, list[TensorPart]] = {}
        for op in self.operators:
            if op in self.variables:
                members.setdefault(self.variables[op], []).extend((*self._data(op), *self._outputs(op)))
        owners: list[OperatorPart | SubgraphPart] = [op for op in self.operators if op in self.calls]
        for owner in (*owners, self.graph):
            for end, key in self.tight(owner).items():
                tensor = self._at(owner, end)
                if tensor is not None and tensor in self.parents:
                    members.setdefault(key, []).append(tensor)
        for tensors in members.values():
            for tensor in tensors[1:]:
                self.parents[self._root(tensor)] = self._root(tensors[0])
        for key, tensors in members.items():
            if tensors:
                self.held.setdefault(self._root(tensors[0]), []).append(key)

    @staticmethod
    def _at(owner: OperatorPart | SubgraphPart, end: tuple[str, int]) -> TensorPart | None:
        found: TensorPart | None = getattr(owner, end[0])[end[1]]
        return found

    def tight(self, owner: OperatorPart | SubgraphPart) -> dict[tuple[str, int], Key]:
        """The ends of an operator or of the subgraph that are codes."""
        return {end: key for end, key in self.calls.get(owner, {}).items() if key not in self.loose}

    def ends(self, side: str) -> dict[TensorPart, Key]:
        """The subgraph's inputs or outputs that are codes for those who call it."""
        found = {self._at(self.graph, end): key for end, key in self.tight(self.graph).items() if end[0] == side}
        return {tensor: key for tensor, key in found.items() if tensor is not None}

    def enters(self, tensor: TensorPart) -> bool:
        return tensor in self.ends("inputs")

    def is_touched(self, tensor: TensorPart) -> bool:
        """Whether an integer operator reads or writes it."""
        return not tensor.is_constant and tensor in self.parents and self._root(tensor) in self.parameters

    def makes_codes(self, tensor: TensorPart) -> bool:
        producer = self.producers.get(tensor)
        return producer is not None and producer in self.operators and tensor in self._outputs(producer)

    def reads_codes(self, op: OperatorPart, tensor: TensorPart) -> bool:
        """Whether the operator reads it as codes, at all places where it does."""
        if op not in self.operators or op not in self.calls:
            return op in self.operators
        tight = self.tight(op)
        return all(("inputs", i) in tight for i, found in enumerate(op.inputs) if found == tensor)

    def _drop_idle(self) -> None:
        """Takes out operators that only move data where no other integer operator reads or writes it, and those of
        tensors whose range is not known or has no end."""
        busy, known, infinite = set(), set(), set()
        for op in self.operators:
            rule, outputs = self._rule(op), self._outputs(op)
            tensors = (*self._data(op), *outputs)
            if rule not in _IDLE and op not in self.calls:
                busy |= {self._root(tensor) for tensor in tensors}
            known |= {self._root(tensor) for tensor in tensors if self.ranges.knows(tensor)}
            infinite |= {self._root(tensor) for tensor in tensors if self._is_infinite(tensor)}
            if isinstance(rule, tuple):
                known |= {self._root(tensor) for tensor in outputs}
        for op in list(self.operators):
            roots = {self._root(tensor) for tensor in (*self._data(op), *self._outputs(op))}
            if not roots and (op in self.variables or op in self.calls):
                continue  # a constant is assigned: the others decide
            if roots & infinite:
                self._check_constants(op)
            if not roots <= known or roots & infinite or (self._rule(op) in _IDLE and not roots & busy):
                del self.operators[op]

    def _check_constants(self, op: OperatorPart) -> None:
        """ValueError: infinite activations come from weights or a bias that are no numbers."""
        row, inputs = INTEGER[self._name(op)], op.inputs
        for place in (row.weights, row.bias):
            tensor = inputs[place] if place is not None and place < len(inputs) else None
            data = tensor.data if is_constant_float(tensor) and tensor is not None else None
            if data is not None and not np.isfinite(data).all():
                wrong = data[~np.isfinite(data)].ravel()[0]
                raise ValueError(f"{tensor!r} of operator {op.name}: it holds {wrong}")

    def _is_infinite(self, tensor: TensorPart) -> bool:
        return self.ranges.knows(tensor) and max(map(abs, self.ranges.of(tensor))) >= _INFINITE

    def _choose(self) -> None:
        """The parameters of each group."""
        self.passing = clipping.passing(self.graph, {op: self._name(op) for op in self.operators})
        members: dict[TensorPart, list[TensorPart]] = {}
        constants: dict[TensorPart, list[TensorPart]] = {}
        for op in self.operators:
            tensors = [*self._data(op), *self._outputs(op)]
            for tensor in tensors:
                members.setdefault(self._root(tensor), []).append(tensor)
            if self._rule(op) in _SHARE and self._name(op) not in _BOUNDING and tensors:
                inputs = op.inputs
                found = [inputs[i] for i in self._places(op)]
                constants.setdefault(self._root(tensors[0]), []).extend(t for t in found if t and t.is_constant)
        self.given = {root: given for root, tensors in members.items() if (given := self._given(tensors)) is not None}
        self.parameters = {
            root: self.given.get(root) or self._parameters(root, list(dict.fromkeys(tensors)), constants.get(root, ()))
            for root, tensors in members.items()
        }
        for _ in range(8):  # what widens one group may narrow another operator's inputs
            if not any([self._widen(op) for op in self.operators]):
                break

    def _given(self, tensors: Sequence[TensorPart]) -> Parameters | None:
        """What the caller gives; ValueError where tensors that must be equal get different ones."""
        found: dict[tuple[float, int], TensorPart] = {}
        for tensor in tensors:
            given = self.ranges.fixed(tensor)
            if given is not None:
                found.setdefault((float(given.scale), int(given.zero_point)), tensor)
        if len(found) > 1:
            names = " and ".join(repr(tensor.name) for tensor in list(found.values())[:2])
            raise ValueError(f"overrides: tensors {names} must have the same parameters, and get different ones")
        for (scale, zero), tensor in found.items():
            if not self.least <= zero <= self.most or (self.type == "int16" and zero):
                needed = "0" if self.type == "int16" else f"{self.least} to {self.most}"
                raise ValueError(f"overrides: the zero point of {tensor.name!r} is {zero}; {self.type} needs {needed}")
            return self._of_scale(scale, zero)
        return None

    def _parameters(
        self, root: TensorPart, tensors: Sequence[TensorPart], constants: Sequence[TensorPart]
    ) -> Parameters:
        spans = [self.spans[key] for key in self.held.get(root, ()) if key in self.spans]
        fixed, others = set(), bool(constants) or root in self.centered or bool(spans)
        for tensor in tensors:
            producer = self.producers.get(tensor)
            rule = self._rule(producer) if producer in self.operators and producer is not None else FREE
            if isinstance(rule, tuple):
                fixed.add(rule)
            elif rule not in _SHARE:
                others = True
        if len(fixed) == 1 and not others:
            made = self._of_scale(*next(iter(fixed)))
            if not self._is_exceeded(made, tensors):
                return made
        ranges = [self._needed(tensor) for tensor in tensors if self.ranges.knows(tensor)]
        ranges += [*spans, *(self._range_of(tensor) for tensor in constants)]
        ranges += [self._of_scale(*rule)[2:] for rule in fixed if not ranges]
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        if root in self.centered and self.type == "int8":
            high = max(abs(low), abs(high))
            low = -high
        return self._of_range(low, high, root in self.centered)

    def _is_exceeded(self, made: Parameters, tensors: Sequence[TensorPart]) -> bool:
        """Whether a bound, whose number is no reason for a range, was what came out, and has no code."""
        writers = ((tensor, self.producers.get(tensor)) for tensor in tensors)
        outputs = [t for t, op in writers if op is not None and self._name(op) in _BOUNDING and self.ranges.knows(t)]
        needed = [self._needed(tensor) for tensor in outputs]
        return any(low < made.low - made.scale or high > made.high + made.scale for low, high in needed)

    def _needed(self, tensor: TensorPart) -> tuple[float, float]:
        """The range for which there must be codes."""
        found, passing = self.ranges.of(tensor), self.passing.get(tensor, clipping.ALL)
        return clipping.cut(found, passing) if self.ranges.was_measured(tensor) else found

    @staticmethod
    def _range_of(tensor: TensorPart) -> tuple[float, float]:
        """Of a constant."""
        data = tensor.data
        if data is None or not data.size:
            return 0.0, 0.0
        if np.isnan(data).any():
            raise ValueError(f"{tensor!r} holds values that are not numbers")
        real = data[np.abs(data) < _INFINITE]  # the others saturate, as they are meant to
        return (float(real.min()), float(real.max())) if real.size else (0.0, 0.0)

    def _of_range(self, low: float, high: float, centered: bool = False) -> Parameters:
        made = _core.choose_quantization_params(
            low, high, self.type, symmetric=centered, narrow_range=centered, rule="mlir"
        )
        return Parameters(np.float32(made.scale), int(made.zero_point), low, high)

    def _of_scale(self, scale: float, zero: int) -> Parameters:
        return Parameters(np.float32(scale), zero, scale * (self.least - zero), scale * (self.most - zero))

    def _constant_parameters(self, op: OperatorPart, place: int, tensor: TensorPart) -> Parameters:
        if op in self.variables:
            return self.agreed[self.variables[op]]
        if op in self.calls:
            return self.agreed[self.calls[op]["inputs", place]]
        if self._rule(op) in _SHARE:
            return self.of((*self._data(op), *self._outputs(op))[0])
        low, high = self._range_of(tensor)
        if INTEGER[self._name(op)].narrow == place:
            made = _core.choose_quantization_params(low, high, "int8", rule="mlir")
            return Parameters(np.float32(made.scale), int(made.zero_point), low, high)
        if self._rule(op) == READS:
            high = max(high, low + _LEAST_COMPARED)
        return self._of_range(low, high)

    # -- limits of kernels

    def _scales(self, op: OperatorPart) -> Scales:
        inputs, outputs = op.inputs, self._outputs(op)
        places = [i for i in self._places(op) if inputs[i] is not None]
        read: list[TensorPart] = [inputs[i] for i in places]  # type: ignore[misc]
        found = [
            self._constant_parameters(op, i, t) if t.is_constant else self.of(t)
            for i, t in zip(places, read, strict=True)
        ]
        codes = [float(p.scale) * (self.least - p.zero_point) for p in found]
        lows = [
            self._range_of(t)[0] if t.is_constant else self.ranges.of(t)[0] if self.ranges.knows(t) else code
            for t, code in zip(read, codes, strict=True)
        ]
        beta = op.options.get("beta")
        return Scales(
            self.type,
            tuple(float(p.scale) for p in found),
            tuple(t.is_constant for t in read),
            tuple(lows),
            tuple(codes),
            float(self.of(outputs[0]).scale) if outputs else 0.0,
            1.0 if beta is None else float(beta),
            self._weights_scale(op, float(found[0].scale)),
        )

    def _weights_scale(self, op: OperatorPart, input_scale: float) -> float:
        """The greatest, which grows where a bias would have no code."""
        row, inputs = INTEGER[self._name(op)], op.inputs
        if row.weights is None:
            return 0.0
        weights: TensorPart = inputs[row.weights]  # type: ignore[assignment]
        bias = inputs[row.bias] if row.bias is not None and row.bias < len(inputs) else None
        if weights.is_constant:
            scale = self._greatest(weights) / 127
        elif self.type == "int8":
            scale = float(self.of(weights).scale)
        else:
            scale = max(map(abs, self.ranges.of(weights))) / 127
        return scale if bias is None else max(scale, self._greatest(bias) * 2.0**-30 / input_scale)

    def _greatest(self, tensor: TensorPart) -> float:
        """Of a constant.  0 where there is no end: its codes will be refused."""
        if tensor not in self._ends:
            data = tensor.data
            found = 0.0 if data is None or not data.size else max(float(data.max()), -float(data.min()))
            self._ends[tensor] = found if math.isfinite(found) else 0.0
        return self._ends[tensor]

    def _least_scale(self, op: OperatorPart) -> float:
        """Of an output: the kernel's limit; and LiteRT refuses 2^31 steps or more to a fused activation's end, which
        int16 would have where all that was seen is 0, since its ranges are not widened."""
        limit = INTEGER[self._name(op)].limit
        _, end = clipping.BOUNDS.get(getattr(op.options.get("fused_activation_function"), "name", ""), clipping.ALL)
        least = limit.least(self._scales(op)) if limit is not None and limit.least is not None else 0.0
        return max(least, end * 2.0**-30) if math.isfinite(end) else least

    def _widen(self, op: OperatorPart) -> bool:
        """Grows an output's scale to what the kernel takes."""
        least = self._least_scale(op)
        if not least:
            return False
        root = self._root(self._outputs(op)[0])
        have = self.parameters[root]
        if have.scale >= least or root in self.given:
            return False
        least *= 1.0001  # float32 rounds the scale
        low, high = min(have.low, self.least * least), max(have.high, self.most * least)
        self.parameters[root] = self._of_range(low, high, root in self.centered)
        return True

    def _drop_limited(self) -> None:
        for op in list(self.operators):
            limit = INTEGER[self._name(op)].limit
            if op not in self.operators or limit is None or limit.holds(self._scales(op)):
                continue
            del self.operators[op]
            if limit.relative:
                self._drop_writers(op)

    def _drop_writers(self, op: OperatorPart) -> None:
        """Leaves float what writes an operator's input, and before that what gives small results for small inputs."""
        waiting = [writer for t in self._data(op) if (writer := self.producers.get(t)) is not None]
        first, seen = set(waiting), set[OperatorPart]()
        while waiting:
            writer = waiting.pop()
            if writer in seen or not (writer in first or self._name(writer) in RELATIVE):
                continue
            seen.add(writer)
            self.operators.pop(writer, None)
            if self._name(writer) in RELATIVE:
                found = [self.producers.get(t) for t in writer.inputs if t is not None]
                waiting += [item for item in found if item is not None]

    def of(self, tensor: TensorPart) -> Parameters:
        return self.parameters[self._root(tensor)]
