# SPDX-License-Identifier: Apache-2.0
"""tq.Interpreter: TFLite's interpreter, with the same arguments, methods and results.

    interpreter = tq.Interpreter(model_path="model.tflite")
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

This module has the names of `ai_edge_litert.interpreter`; tq.stand_in() puts it in that module's place.
Source of names, texts and exceptions: LiteRT f6745779, tflite/python/interpreter.py and interpreter_wrapper.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tq import _core
from tq.nearest import hint, nearest
from tq.sources import Source, is_path, opened

if TYPE_CHECKING:
    from tq.running.backends import Backends
    from tq.running.memory_plan import MemoryPlan
    from tq.running.profile import Profile
    from tq.running.trace import Step

Details = dict[str, Any]

#: The key of a signature that stands for subgraph 0, by its tensors' names, in a model without signatures.
DEFAULT_SIGNATURE = "<placeholder signature>"


@enum.unique
class OpResolverType(enum.Enum):
    """The kernels that TFLite would run."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


_registered: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}


def register_op(
    name: str,
    prepare: Callable[[tuple[Any, ...], bytes], Sequence[Any]],
    eval: Callable[[tuple[Any, ...], bytes], Any],
) -> None:
    """Adds a custom operator for interpreters made from now on.

    name: the operator's custom code in files.
    prepare(shapes, options): returns a list with the shape of each output; None: known only after eval.
        shapes: of the inputs, tuples (None: an input left out); options: the operator's custom options (bytes; see
        tq.decode_flexbuffer).
    eval(inputs, options): returns a list of arrays, or one array for one output, with the dtypes of the model and the
        shapes of prepare.  inputs: arrays (None: an input left out).

    An exception of theirs ends allocate_tensors or invoke.  An operator of the same name that tq has built in is
    replaced.
    TypeError: prepare or eval cannot be called.
    """
    if not callable(prepare) or not callable(eval):
        raise TypeError("prepare and eval must be callable")
    _registered[str(name)] = (prepare, eval)


def load_delegate(library: str, options: dict[str, Any] | None = None) -> Any:
    """Always ValueError: tq has its own kernels and runs no delegates."""
    raise ValueError(f"Failed to load delegate from {library}\ntq runs no delegates")


#: The arithmetic of each of TFLite's resolvers; XNNPACK's is the default.
NUMERICS = {
    OpResolverType.AUTO: "xnnpack",
    OpResolverType.BUILTIN: "xnnpack",
    OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES: "optimized",
    OpResolverType.BUILTIN_REF: "reference",
}


def _rounded(numerics: str, rounding: str | None) -> str:
    """The numerics, where `rounding` goes with them."""
    if rounding not in (None, "double", "single"):
        raise ValueError(f"rounding is {rounding!r}; it needs to be 'double' or 'single'")
    if numerics not in NUMERICS.values():
        raise ValueError(f"numerics is {numerics!r}; it needs to be 'reference', 'optimized' or 'xnnpack'")
    if rounding == "single" and numerics != "reference":
        raise ValueError(f"rounding is 'single' and numerics {numerics!r}: only the reference kernels can be built so")
    return numerics


def _numerics(numerics: str | None, resolver: Any, rounding: str | None) -> str:
    if not isinstance(resolver, enum.Enum) or resolver.name not in OpResolverType.__members__:
        raise ValueError(f"Unrecognized passed in op resolver type: {resolver}")
    asked = OpResolverType[resolver.name]
    if numerics is None:
        return "reference" if rounding == "single" and asked == OpResolverType.AUTO else NUMERICS[asked]
    if asked != OpResolverType.AUTO and numerics != NUMERICS[asked]:
        raise ValueError(f"numerics is {numerics!r}, and experimental_op_resolver_type {asked.name}: give one of them")
    return numerics


def _given(argument: Any) -> bool:
    return argument is not None and not (isinstance(argument, (str, bytes)) and not argument)


def _open(path: Any, content: Any, model: Source | None) -> _core.Model:
    if model is not None:
        if _given(path) or _given(content):
            raise ValueError("model is given: `model_path` and `model_content` cannot be")
        return opened(model)
    if _given(path) and _given(content):
        raise ValueError("Can't both provide `model_path` and `model_content`")
    if isinstance(path, _core.Model):
        return path
    if _given(path) and not is_path(path):
        path, content = None, path
    if not _given(path) and not _given(content):
        raise ValueError("`model_path` or `model_content` must be specified.")
    try:
        return _core.Model(os.fsdecode(path) if _given(path) else content)
    except OSError as error:
        raise ValueError(f"Could not open '{os.fsdecode(path)}'. {error.strerror or error}") from error
    except _core.ModelError as error:
        refused = _core.ModelError(f"The model is not a valid Flatbuffer buffer: {error}")
        refused.code, refused.offset = error.code, error.offset
        raise refused from error


def _limit(name: str, value: int | None) -> int:
    """A limit as the runtime takes it: 0 for None.  ValueError: no int from 1 to 2^64 - 1."""
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**64:
        raise ValueError(f"{name} is {value!r}; it needs to be None or an int from 1 to 2^64 - 1")
    return value


@contextmanager
def _resizing() -> Iterator[None]:
    """Turns ValueError into RunError, since LiteRT raises RuntimeError where a resize fails."""
    try:
        yield
    except ValueError as error:
        refused = _core.RunError(str(error))
        refused.code, refused.offset = getattr(error, "code", "BAD_ARGUMENT"), None
        raise refused from None


class Interpreter(_core.Interpreter):
    """Runs a model.  Takes the arguments of LiteRT's and TensorFlow's interpreters, and a few of its own.

    model_path, model_content: a file, or a model's bytes.  model_path may also be a tq.Model, bytes such as those of
        tq.quantize_model, or an open file.
    experimental_delegates: None; tq runs no delegates.
    num_threads: how many threads an operator may use; None is one.
    experimental_op_resolver_type: an OpResolverType, also LiteRT's own.
    experimental_preserve_all_tensors: every intermediate tensor has memory of its own and can be read.  Changes no
        result.

    model: an open tq.Model.  Interpreters in any threads may share it; they share its prepacked weights.
    numerics: the kernels whose bits integer results have: "reference", TFLite's reference kernels; "optimized", its
        optimized kernels on one x86 thread; "xnnpack", XNNPACK on x86, and the optimized kernels for operators that
        XNNPACK refuses (see backends()).  Hybrid products of floats and quantized weights have the same bits too; other
        floats may differ in their last bits.  None: the resolver decides, as in LiteRT: AUTO and BUILTIN are "xnnpack",
        BUILTIN_WITHOUT_DEFAULT_DELEGATES is "optimized", BUILTIN_REF "reference".
    rounding: "double", as the released runtimes round products by multipliers; or "single", the reference kernels as a
        build with TFLITE_SINGLE_ROUNDING has them (microcontrollers' often), which needs numerics "reference" or none.
    max_memory: bytes for tensors and prepacked weights; by default the machine's memory.  Memory that interpreters of
        one `model` share counts in full for each of them.
    max_multiply_adds: the work of a subgraph's operators in one run, and of one call of invoke with all rounds of its
        loops; no limit by default.  An operator counts tq.Operator.multiply_adds for the shapes of the run, and at
        least one for each element of its largest input or output; pooling counts one for each element of each window.

    The other arguments concern delegates, and change nothing.  LiteRT refuses to run while a view of a tensor exists;
    in tq a view keeps its memory, and the run proceeds.

    ValueError: wrong arguments, or no model (tq.ModelError).  allocate_tensors finds operators that cannot run.
    """

    def __init__(
        self,
        model_path: Source | os.PathLike[Any] | None = None,
        model_content: Any = None,
        experimental_delegates: Any = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: Any = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
        *,
        model: Source | None = None,
        numerics: str | None = None,
        rounding: str | None = None,
        max_memory: int | None = None,
        max_multiply_adds: int | None = None,
    ) -> None:
        super().__init__()
        start = time.perf_counter()
        numerics = _rounded(_numerics(numerics, experimental_op_resolver_type, rounding), rounding)
        if num_threads is not None:
            if not isinstance(num_threads, int):
                raise ValueError("type of num_threads should be int")
            if num_threads < 1:
                raise ValueError("num_threads should >= 1")
        if experimental_delegates:
            raise ValueError("experimental_delegates must be None: tq runs no delegates")
        self.model = _open(model_path, model_content, model)
        self.experimental_compress_quantization_zero_points = experimental_compress_quantization_zero_points
        threads = min(num_threads or 1, 64)
        keep = bool(experimental_preserve_all_tensors)
        memory, work = _limit("max_memory", max_memory), _limit("max_multiply_adds", max_multiply_adds)
        kernels = "reference-single" if rounding == "single" else numerics
        self._open(self.model, kernels, threads, keep, memory, work, dict(_registered))
        self._opening = time.perf_counter() - start
        self._allocating = 0.0
        self.rounding = rounding or "double"
        self.numerics = numerics

    def __repr__(self) -> str:
        rounding = ", rounding 'single'" if self.rounding == "single" else ""
        return f"<tq.Interpreter of {self.model!r}, numerics {self.numerics!r}{rounding}>"

    # ---- running ----

    def allocate_tensors(self) -> None:
        """Prepares every operator and gives every tensor its memory.

        tq.RunError, a RuntimeError: operators that tq does not know, or whose contract does not hold, a line for each.
        """
        start = time.perf_counter()
        self._allocate()
        self._allocating = time.perf_counter() - start

    @property
    def preparation_seconds(self) -> float:
        """The time of making this interpreter and of the last allocate_tensors."""
        return self._opening + self._allocating

    def run(self, start: int = 0, until: int | None = None) -> None:
        """Runs operators `start` to `until` - 1 of subgraph 0; until: None: to the end.

        They read the outputs of earlier operators as they are; set_tensor can replace these.  An interpreter with
        experimental_preserve_all_tensors keeps the values of the run before.  IndexError: no such operators.
        """
        count = len(self.model.subgraphs[0].operators)
        until = count if until is None else until
        if not 0 <= start <= until <= count:
            raise IndexError(f"operators {start} to {until} of {count}")
        self._invoke(0, start, until)

    def trace(self) -> Iterator[Step]:
        """Runs the model operator by operator, and yields each with its outputs.

        A Step has `index`, `operator` (a tq.Operator) and `outputs`, a list of arrays (None for one left out).
        """
        from tq.running.trace import trace

        return trace(self, self.model)

    def profile(self, runs: int = 10, warm_up: int | None = None) -> Profile:
        """Measures the time of each operator, the median of `runs` runs after `warm_up` ones, with its bytes and
        multiply-adds; the spread of whole runs, the time of the first one and of preparing, and memory.

        warm_up: None: for 0.1 s, at least one run and at most 50.
        `print` of the result is a table; `.plot()` draws it.  Inputs: the values of the last set_tensor.
        ValueError: runs is less than 1, or warm_up negative.
        """
        from tq.running.profile import profile

        return profile(self, self.model, runs, warm_up, self.preparation_seconds)

    def backends(self, subgraph_index: int = 0) -> Backends:
        """The kernels with which LiteRT would run each operator of a subgraph, and the reason.

        A list of rows with `index`, `operator` (a name), `numerics`, `rule` (the condition that decided, as text) and
        `litert`: LiteRT's behaviour where it is known not to run the operator, else None.  `print` of it is a table.
        The file decides, so allocate_tensors is not needed.  IndexError: there is no such subgraph.
        """
        from tq.running.backends import backends

        return backends(self, self.model, subgraph_index)

    def memory_plan(self, subgraph_index: int = 0) -> MemoryPlan:
        """The offsets of a subgraph's tensors in the arena, and the operators between which they live.

        `print` of the result is a table; `.plot()` draws it.  Needs allocate_tensors.
        """
        from tq.running.memory_plan import memory_plan

        return memory_plan(self, self.model, subgraph_index)

    # ---- tensors ----

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray]:
        """A function that returns a view of a tensor's memory.

        Writing to the view of an input sets the input.  A view keeps its memory and stays valid after the interpreter
        is gone; after another allocate_tensors it shows the former memory.
        """
        return lambda: self._view(tensor_index)

    def resize_tensor_input(self, input_index: int, tensor_size: Any, strict: bool = False) -> None:
        """Gives an input another shape; allocate_tensors has to be called again.

        tensor_size: the dimensions; floats are truncated, as in LiteRT.
        strict: only dimensions that are -1 in the file's shape_signature may change.
        ValueError, TypeError, OverflowError: tensor_size is no list of int32.  tq.RunError, a RuntimeError: no such
        tensor, an impossible shape, a constant, or a dimension that is fixed under `strict`.
        """
        size = np.array(tensor_size, np.int32)
        if size.ndim != 1:
            raise ValueError(f"Shape should be 1D instead of {size.ndim}.")
        if isinstance(tensor_size, np.ndarray) and tensor_size.dtype.kind in "iu" and (size != tensor_size).any():
            raise OverflowError(f"the shape {tensor_size.tolist()} is out of bounds for int32")
        shape = tuple(size.tolist())
        if strict:
            self._check_strict(input_index, shape)
        self._resize_input(input_index, shape, 0)

    def _resize_input(self, index: int, shape: tuple[int, ...], subgraph: int) -> None:
        with _resizing():
            self._resize(index, shape, subgraph)

    def _check_strict(self, index: int, shape: tuple[int, ...]) -> None:
        with _resizing():
            details = self._get_tensor_details(index, 0)
        now, signature = details["shape"].tolist(), details["shape_signature"].tolist()
        if len(shape) != len(now):
            raise _core.RunError(
                f"Attempting to resize tensor {index} with {len(now)} dimensions to {len(shape)}. "
                "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
            )
        for axis, (old, new, known) in enumerate(zip(now, shape, signature, strict=True)):
            if old != new and known != -1:
                raise _core.RunError(
                    f"Attempting to resize dimension {axis} of tensor {index} with value {old} to {new}. "
                    "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
                )

    # ---- details ----

    def num_subgraphs(self) -> int:
        """How many subgraphs the model has."""
        return len(self.model.subgraphs)

    def get_tensor_details(self, subgraph_index: int = 0) -> list[Details]:
        """The details of every tensor of a subgraph, in the file's order, with the current shapes.

        ValueError: there is no such subgraph.
        """
        count = self.num_subgraphs()
        if not 0 <= subgraph_index < count:
            raise ValueError(
                f"subgraph_index is out of range: {subgraph_index} for the model, which has {count} subgraphs."
            )
        return self._now(self.model.get_tensor_details(subgraph_index), subgraph_index)

    def get_input_details(self) -> list[Details]:
        """The details of the model's inputs: name, index, shape, dtype, quantization ..."""
        return self._now(self.model.get_input_details(), 0)

    def get_output_details(self) -> list[Details]:
        """The details of the model's outputs."""
        return self._now(self.model.get_output_details(), 0)

    def _now(self, details: list[Details], subgraph: int) -> list[Details]:
        changed, given = self._changed_shapes(subgraph), self._given_types(subgraph)
        if not changed and not given:
            return details
        for item in details:
            item["dtype"] = given.get(item["index"], item["dtype"])
            if item["index"] in changed:
                self._set_shape(item, changed[item["index"]])
        return details

    @staticmethod
    def _set_shape(item: Details, shape: tuple[int, ...]) -> None:
        had_signature = not np.array_equal(item["shape"], item["shape_signature"])
        item["shape"] = np.array(shape, np.int32)
        if not had_signature:  # no signature of its own
            item["shape_signature"] = item["shape"].copy()

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int = 0) -> Details:
        """The details of one tensor.  ValueError: there is none."""
        tensors = self.model.subgraphs[subgraph_index].tensors
        if not 0 <= tensor_index < len(tensors):
            raise ValueError(f"Invalid tensor index {tensor_index} exceeds max tensor index {len(tensors)}")
        for item in self.get_tensor_details(subgraph_index):
            if item["index"] == tensor_index:
                return item
        raise ValueError("Could not get tensor details")

    def _get_op_details(self, op_index: int) -> Details:
        """index, op_name, inputs and outputs (tensor indices) and their dtypes.  ValueError: no such operator."""
        if not 0 <= op_index < len(self.model.subgraphs[0].operators):
            raise ValueError("Invalid node index")
        return self._op_details([op_index])[0]

    def _get_ops_details(self) -> list[Details]:
        """_get_op_details of every operator."""
        return self._op_details(range(len(self.model.subgraphs[0].operators)))

    def _op_details(self, indices: Sequence[int]) -> list[Details]:
        dtypes = {item["index"]: item["dtype"] for item in self.get_tensor_details()}
        operators = self.model.subgraphs[0].operators
        result = []
        for index in indices:
            op = operators[index]
            inputs, outputs = list(op.input_indices), list(op.output_indices)
            result.append(
                {
                    "index": index,
                    "op_name": op.name,
                    "inputs": np.array(inputs, np.int32),
                    "outputs": np.array(outputs, np.int32),
                    "operand_types": [dtypes[i] for i in inputs if i != -1],
                    "result_types": [dtypes[i] for i in outputs if i != -1],
                }
            )
        return result

    # ---- signatures ----

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        return {
            signature.key: {side: dict(sorted(getattr(signature, side).items())) for side in ("inputs", "outputs")}
            for signature in self.model.signatures
        }

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """{key: {"inputs": [names], "outputs": [names]}} of the file's signatures; names are sorted, as in LiteRT."""
        return {
            key: {side: list(names) for side, names in signature.items()}
            for key, signature in self._get_full_signature_list().items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function that takes arrays by input name and returns a dict of arrays by output name.

        signature_key: None: the model's only signature; in a model without signatures, subgraph 0 with its tensors'
            names.
        ValueError: there is no such signature, or None is given and there are several.
        """
        if signature_key is None:
            keys = list(self._get_full_signature_list())
            if len(keys) > 1:
                raise ValueError(
                    f"SignatureDef signature_key is None and model has {len(keys)} Signatures. "
                    f"None is only allowed when the model has 1 SignatureDef. These are {', '.join(keys)}"
                )
            signature_key = keys[0] if keys else DEFAULT_SIGNATURE
        return SignatureRunner(self, signature_key)

    # ---- private methods of LiteRT that its users call ----

    def _safe_to_run(self) -> bool:
        """Always true: views keep their memory."""
        return True

    def _ensure_safe(self) -> None:
        """Does nothing: see _safe_to_run."""


class InterpreterWithCustomOps(Interpreter):
    """LiteRT's class for custom operators from a library, which tq cannot call: tq.register_op adds them."""

    def __init__(self, custom_op_registerers: Any = None, **kwargs: Any) -> None:
        for registerer in custom_op_registerers or ():
            if isinstance(registerer, str):
                raise ValueError(
                    f"Looking up symbol '{registerer}' failed: tq calls no libraries; tq.register_op adds an operator"
                )
        super().__init__(**kwargs)


class SignatureRunner:
    """Runs a signature: runner(x=array, ...) -> {"y": array, ...}."""

    def __init__(self, interpreter: Interpreter | None = None, signature_key: str | None = None) -> None:
        if not interpreter:
            raise ValueError("None interpreter provided.")
        if not signature_key:
            raise ValueError("None signature_key provided.")
        self._interpreter = interpreter
        self._signature_key = signature_key
        signatures = interpreter._get_full_signature_list()
        self._subgraph_index = 0
        if signature_key in signatures:
            self._signature_def = signatures[signature_key]
            self._subgraph_index = next(
                s.subgraph_index for s in interpreter.model.signatures if s.key == signature_key
            )
        elif signature_key == DEFAULT_SIGNATURE and not signatures:
            self._signature_def = _default_signature(interpreter.model)
        else:
            known = f" These are {', '.join(map(repr, signatures))}." if signatures else ""
            like = nearest(signature_key, signatures)
            known += f" Did you mean {' or '.join(map(repr, like))}?" if like else ""
            raise ValueError(f'Invalid signature_key provided: "{signature_key}".{known}')
        self._inputs = self._signature_def["inputs"]
        self._outputs = self._signature_def["outputs"].items()

    def __call__(self, **kwargs: Any) -> dict[str, Any]:
        """Runs the signature.  Inputs are resized to the arrays' shapes.

        ValueError: an input is missing or unknown, or its dtype is wrong.
        """
        run, subgraph = self._interpreter, self._subgraph_index
        if len(kwargs) != len(self._inputs):
            raise ValueError(
                "Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(kwargs)}. The inputs are {', '.join(self._inputs)}"
            )
        for name in kwargs:
            if name not in self._inputs:
                raise ValueError(
                    f"Invalid Input name ({name}) for SignatureDef. The inputs are {', '.join(self._inputs)}"
                    f"{hint(name, self._inputs)}"
                )
        values = {self._inputs[name]: np.asarray(value) for name, value in kwargs.items()}
        for index, value in values.items():
            run._resize_input(index, value.shape, subgraph)
        run._allocate(subgraph)
        for index, value in values.items():
            run.set_tensor(index, value, subgraph)
        run._invoke(subgraph)
        return {name: run.get_tensor(index, subgraph) for name, index in self._outputs}

    def get_input_details(self) -> dict[str, Details]:
        """The details of each input, by its name."""
        return self._details(self._inputs.items())

    def get_output_details(self) -> dict[str, Details]:
        """The details of each output, by its name."""
        return self._details(self._outputs)

    def _details(self, pairs: Any) -> dict[str, Details]:
        details = {item["index"]: item for item in self._interpreter.get_tensor_details(self._subgraph_index)}
        for name, index in pairs:
            if index not in details:
                raise ValueError(
                    f"signature {self._signature_key!r} says that {name!r} is tensor {index}; "
                    f"subgraph {self._subgraph_index} has {len(details)} tensors"
                )
        return {name: details[index] for name, index in pairs}


def _default_signature(model: _core.Model) -> dict[str, dict[str, int]]:
    """Subgraph 0's inputs and outputs by their tensors' names; unnamed and repeated ones get a number."""

    def named(indices: Sequence[int]) -> dict[str, int]:
        names: dict[str, int] = {}
        for position, index in enumerate(indices):
            name = model.subgraphs[0].tensors[index].name
            names[name if name and name not in names else f"{name or 'tensor'}_{position}"] = index
        return names

    graph = model.subgraphs[0]
    return {
        "inputs": named([t.index for t in graph.inputs if t is not None]),
        "outputs": named([t.index for t in graph.outputs if t is not None]),
    }
