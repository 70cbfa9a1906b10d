# SPDX-License-Identifier: Apache-2.0
"""Constraints: tensors, often of several subgraphs, that are all float, or integers of one type and equal parameters.

Variable      READ_VARIABLE and ASSIGN_VARIABLE copy bytes.  All operators of a variable have equal parameters, whose
              range is that of all tensors that are assigned to the variable or read from it.
ControlFlow   IF, WHILE and STABLEHLO_CASE copy bytes into the subgraphs that they call, and back.  The tensors that
              hold such a value become integers where little is lost: in all branches integer operators read it, or in
              all they write it; in a loop's body an integer operator writes it; and with 8 bits no tensor has a much
              smaller range than all together.

STABLEHLO_COMPOSITE has no constraint: its name and its float tensors are its promise to other runtimes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tq.editing.graph import OperatorPart, SubgraphPart, TensorPart
from tq.quantization.choice import Choice
from tq.quantization.ranges import Parameters
from tq.quantization.view import End, Key, Owner, is_float, range_of_constant, tensor_at
from tq.specification.table import CALLING, VARIABLES
from tq.specification.variables import handles_of, value_of

Choices = Mapping[SubgraphPart, Choice]

# With 8 bits, the greatest ratio of the common range to the range of one tensor: it costs 3.5 dB.
_MOST_WIDER = 1.5


class Constraint:
    """key: ("variable", container, name) or ("control flow", number)."""

    def __init__(self, key: Key) -> None:
        self.key = key

    def graphs(self) -> set[SubgraphPart]:
        raise NotImplementedError

    def holds(self, choices: Choices) -> bool:
        """Whether all tensors of the constraint can be integers."""
        raise NotImplementedError

    def values(self, choices: Choices) -> list[tuple[Choice, TensorPart]]:
        """The tensors of the constraint, each with the choice of its subgraph."""
        raise NotImplementedError

    def costs_much(self, choices: Choices) -> bool:
        """Whether one range for all tensors loses too much accuracy."""
        return False

    def ranges(self, choices: Choices) -> tuple[list[Parameters], list[tuple[float, float]]]:
        """The parameters of the constraint's activations, and the ranges of its constants."""
        values = self.values(choices)
        parameters = [choice.of(value) for choice, value in values if choice.is_integer(value)]
        return parameters, [range_of_constant(value) for _, value in values if value.is_constant]

    def common(self, choices: Choices) -> Parameters | tuple[float, float]:
        """The parameters of all tensors; or, where these differ as yet, the range that all need together."""
        parameters, constants = self.ranges(choices)
        first = parameters[0]
        agree = all((p.scale, p.zero_point) == (first.scale, first.zero_point) for p in parameters)
        if agree and all(first.low <= low and high <= first.high for low, high in constants):
            return first
        return _span(parameters, constants)


def _span(parameters: Iterable[Parameters], constants: Iterable[tuple[float, float]]) -> tuple[float, float]:
    ranges = [*((p.low, p.high) for p in parameters), *constants]
    return min(low for low, _ in ranges), max(high for _, high in ranges)


# ---- variables ----


class Variable(Constraint):
    """operators: all that touch the variable."""

    def __init__(self, key: Key, operators: Sequence[OperatorPart]) -> None:
        super().__init__(key)
        self.operators = operators

    def graphs(self) -> set[SubgraphPart]:
        return {op.subgraph for op in self.operators}

    def holds(self, choices: Choices) -> bool:
        chosen = [op for op in self.operators if op in choices[op.subgraph].operators]
        is_computed = any(not value.is_constant for op in chosen if (value := value_of(op)) is not None)
        types = {choices[op.subgraph].type for op in chosen}
        return len(chosen) == len(self.operators) and is_computed and len(types) == 1

    def values(self, choices: Choices) -> list[tuple[Choice, TensorPart]]:
        return [(choices[op.subgraph], value) for op in self.operators if (value := value_of(op)) is not None]


def find_variables(graphs: Iterable[SubgraphPart]) -> list[Variable]:
    """One for each variable; none where a handle's variable cannot be told."""
    found: dict[Key, list[OperatorPart]] = {}
    for graph in graphs:
        touching = [op for op in graph.operators if op.builtin_name in VARIABLES]
        handles = handles_of(graph) if touching else {}
        for op in touching:
            handle = op.inputs[0] if op.inputs else None
            if handle is None or handle not in handles:
                return []
            found.setdefault(handles[handle], []).append(op)
    return [Variable(key, operators) for key, operators in found.items()]


# ---- control flow ----

# Other operators that name subgraphs, whose ends are float.
_OTHERS = """CALL CALL_ONCE STABLEHLO_COMPOSITE STABLEHLO_REDUCE STABLEHLO_REDUCE_WINDOW STABLEHLO_SCATTER
    STABLEHLO_SORT STABLEHLO_WHILE"""
_NAMING = frozenset((*CALLING, *_OTHERS.split()))


class Port(NamedTuple):
    """An input or an output, of an operator or of a subgraph."""

    owner: Owner
    end: End

    @property
    def graph(self) -> SubgraphPart:
        return self.owner.subgraph if isinstance(self.owner, OperatorPart) else self.owner

    @property
    def tensor(self) -> TensorPart | None:
        return tensor_at(self.owner, self.end)


class ControlFlow(Constraint):
    """A value that subgraphs hand on.  ports: all inputs and outputs that hold it."""

    def __init__(self, key: Key, ports: Sequence[Port], is_loop: bool) -> None:
        super().__init__(key)
        self.ports = ports
        self.is_loop = is_loop

    def graphs(self) -> set[SubgraphPart]:
        return {port.graph for port in self.ports}

    def holds(self, choices: Choices) -> bool:
        if len({choices[port.graph].type for port in self.ports}) != 1:
            return False
        readers = 0
        for port in self.ports:
            if not self._holds_at(port, choices[port.graph]):
                return False
            if port.owner == port.graph and port.end[0] == "inputs" and (tensor := port.tensor) is not None:
                readers += len(choices[port.graph].view.readers.get(tensor, []))
        return self.is_loop or readers > 0 or any(port.end[0] == "outputs" for port in self.ports)

    def _holds_at(self, port: Port, choice: Choice) -> bool:
        tensor = port.tensor
        if tensor is None:
            return False
        if isinstance(port.owner, OperatorPart):
            return port.owner in choice.operators
        if port.end[0] == "outputs":
            return choice.writes(tensor) or tensor in choice.view.graph_ends("inputs")
        if self.is_loop and tensor not in port.owner.outputs:
            return True
        return all(choice.reads(op, tensor) for op in choice.view.readers.get(tensor, []))

    def costs_much(self, choices: Choices) -> bool:
        """Whether the common range is much wider than the range of an input or output of a branch, or of an output of a
        body, which then gets too few of 8 bits' quantized values."""
        if self.values(choices)[0][0].type != "int8":
            return False
        low, high = _span(*self.ranges(choices))
        own = []
        for port in self.ports:
            tensor, choice = port.tensor, choices[port.graph]
            is_inside = port.owner == port.graph and (port.end[0] == "outputs" or not self.is_loop)
            if tensor is not None and is_inside and choice.is_integer(tensor):
                own.append(choice.of(tensor))
        return any(high - low > _MOST_WIDER * (p.high - p.low) for p in own)

    def values(self, choices: Choices) -> list[tuple[Choice, TensorPart]]:
        return [(choices[port.graph], t) for port in self.ports if (t := port.tensor) is not None]


class _Ports:
    """Sets of ports that hand on the same value."""

    def __init__(self) -> None:
        self._parents: dict[Port, Port] = {}

    def root(self, port: Port) -> Port:
        while self._parents.setdefault(port, port) != port:
            port = self._parents[port]
        return port

    def tie(self, *ports: Port) -> None:
        for port in ports[1:]:
            self._parents[self.root(port)] = self.root(ports[0])

    def groups(self) -> dict[Port, list[Port]]:
        found: dict[Port, list[Port]] = {}
        for port in list(self._parents):
            found.setdefault(self.root(port), []).append(port)
        return found


def find_control_flow(graphs: Sequence[SubgraphPart], entries: Iterable[int]) -> list[ControlFlow]:
    """One for each value that is handed on.  entries: subgraphs that a caller of the model runs, whose ends are not to
    change."""
    if len(graphs) < 2:
        return []
    ports, loops = _Ports(), set[Port]()
    fixed = {graphs[port] for port in entries if 0 <= port < len(graphs)}
    for graph in graphs:
        for op in graph.operators:
            callees = _callees(op, graphs)
            if op.builtin_name not in CALLING or not _fits(op, callees):
                fixed.update(callees)
            else:
                _tie_ends(ports, loops, op, callees)
    looping = {ports.root(port) for port in loops}
    return [
        ControlFlow(("control flow", str(number)), found, root in looping)
        for number, (root, found) in enumerate(ports.groups().items())
        if all(_can_be_integer(port) and port.owner not in fixed for port in found)
    ]


def _tie_ends(ports: _Ports, loops: set[Port], op: OperatorPart, callees: Sequence[SubgraphPart]) -> None:
    """Ties the inputs and outputs of an operator to its callees'; `loops` gets the ends of a loop."""
    is_loop, first = op.builtin_name == "WHILE", CALLING[op.builtin_name or ""][1]
    for index in range(first, len(op.inputs)):
        inner = [Port(callee, ("inputs", index - first)) for callee in callees]
        ports.tie(Port(op, ("inputs", index)), *inner)
    givers = callees[1:] if is_loop else callees
    for index in range(len(op.outputs)):
        end = ("outputs", index)
        ports.tie(Port(op, end), *(Port(callee, end) for callee in givers))
        if is_loop:
            ports.tie(Port(op, ("inputs", index)), Port(op, end))
            loops.add(Port(op, end))


def _callees(op: OperatorPart, graphs: Sequence[SubgraphPart]) -> list[SubgraphPart]:
    """Every subgraph that an operator's options name, in their order."""
    found = []
    for name in op.options if op.builtin_name in _NAMING else ():
        if not name.endswith(("subgraph_index", "subgraph_indices")) and name != "subgraph":
            continue
        value = op.options.get(name)
        for item in np.atleast_1d(np.asarray([] if value is None else value)).tolist():
            if 0 <= int(item) < len(graphs):
                found.append(graphs[int(item)])
    return found


def _fits(op: OperatorPart, callees: Sequence[SubgraphPart]) -> bool:
    """Whether it has as many callees, inputs and outputs as it should."""
    names, first = CALLING[op.builtin_name or ""]
    is_loop = op.builtin_name == "WHILE"
    if len(callees) < len(names) or any(len(callee.inputs) != len(op.inputs) - first for callee in callees):
        return False
    givers = callees[1:] if is_loop else callees
    if any(len(callee.outputs) != len(op.outputs) for callee in givers):
        return False
    return not is_loop or (len(op.inputs) == len(op.outputs) and callees[0] != callees[1])


def _can_be_integer(port: Port) -> bool:
    tensor = port.tensor
    if tensor is None or not is_float(tensor) or tensor.is_variable or tensor.is_sparse:
        return False
    return not tensor.is_constant or (isinstance(port.owner, OperatorPart) and port.end[0] == "inputs")
