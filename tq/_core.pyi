# SPDX-License-Identifier: Apache-2.0
"""Types of the C core.  Docstrings stand in the C sources; here, one line each."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, Final, Generic, Literal, TypedDict, TypeVar, final, overload

import numpy as np
from _typeshed import structseq
from numpy.typing import ArrayLike, DTypeLike, NDArray
from typing_extensions import Buffer as _SupportsBuffer
from typing_extensions import Self, disjoint_base

from tq.inspection.plots import Axes
from tq.inspection.summary import Summary
from tq.schema_enums import BuiltinOperator, TensorType
from tq.sources import Source
from tq.view.view import View

_T = TypeVar("_T", covariant=True)
_D = TypeVar("_D")
_TensorFacts = TypeVar("_TensorFacts")
_ConstantFacts = TypeVar("_ConstantFacts")
_Details = dict[str, Any]

class Error(Exception): ...

class ModelError(Error, ValueError):
    code: str
    offset: int | None

class RunError(Error, RuntimeError):
    """A model that cannot be run, or data that an operator of it cannot take."""

    code: str
    offset: None

@final
class Sequence(Generic[_T]):
    """A read-only sequence whose items are made at each access.  A str finds the first item of that name."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int | str, /) -> _T: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[_T]: ...
    def __iter__(self) -> Iterator[_T]: ...
    def __contains__(self, name: object, /) -> bool: ...  # an item's name, or an item
    @overload
    def get(self, name: str, default: None = None, /) -> _T | None: ...
    @overload
    def get(self, name: str, default: _D, /) -> _T | _D: ...
    def _ipython_key_completions_(self) -> list[str]: ...

@final
class OperatorCode(structseq[Any], tuple[str, BuiltinOperator | Any, str | None, int]):
    __match_args__: Final = ("name", "code", "custom_code", "version")
    @property
    def name(self) -> str: ...  # "CONV_2D", or a custom operator's own name
    @property
    def code(self) -> BuiltinOperator | Any: ...  # an int where the schema does not know it
    @property
    def custom_code(self) -> str | None: ...
    @property
    def version(self) -> int: ...

@final
class Signature(structseq[Any], tuple[str, int, dict[str, int], dict[str, int]]):
    __match_args__: Final = ("key", "subgraph_index", "inputs", "outputs")
    @property
    def key(self) -> str: ...
    @property
    def subgraph_index(self) -> int: ...
    @property
    def inputs(self) -> dict[str, int]: ...  # name -> tensor index in that subgraph, as stored
    @property
    def outputs(self) -> dict[str, int]: ...

@final
class Problem(structseq[Any], tuple[str, str, str, str]):
    __match_args__: Final = ("code", "place", "text", "severity")
    @property
    def code(self) -> str: ...  # "scale-count"
    @property
    def place(self) -> str: ...  # "subgraph 0, tensor 4 'conv/weights'"
    @property
    def text(self) -> str: ...  # the finding and the need
    @property
    def severity(
        self,
    ) -> str: ...  # "error": TFLite refuses or cannot compute it; "warning": hardly intended

@final
class ExternalBuffer(structseq[Any], tuple[int, str | None, int, int, str | None]):
    __match_args__: Final = ("id", "group", "offset", "length", "packing")
    @property
    def id(self) -> int: ...
    @property
    def group(self) -> str | None: ...  # the side file's name
    @property
    def offset(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def packing(self) -> str | None: ...

@final
class Buffer:
    """One of the model's buffers."""

    model: Model
    index: int
    nbytes: int
    offset: int | None  # of the first byte in the file; None without data
    data: NDArray[np.uint8] | None  # read-only view
    is_inline: bool  # its data lie inside the flatbuffer; False: behind it, at `offset`

@final
class Quantization:
    """A tensor's quantization: real value = scale * (q - zero_point); false where the file stores none."""

    def __new__(
        cls,
        scale: ArrayLike,
        zero_point: ArrayLike = 0,
        *,
        dtype: DTypeLike | _NarrowType = "int8",
        quantized_dimension: int = 0,
        block_size: int = 0,
        min: ArrayLike | None = None,
        max: ArrayLike | None = None,
    ) -> Self: ...
    dtype: str | None  # of the quantized values: "int8", "int4"; None: not quantized
    scale: NDArray[np.float32]  # blockwise: the scale tensor's values, in its dtype and shape
    zero_point: NDArray[np.int64]
    min: NDArray[np.float32]  # as stored; empty where the file stores none
    max: NDArray[np.float32]
    range_min: NDArray[np.float32]  # scale * (least quantized value - zero_point), one a scale
    range_max: NDArray[np.float32]
    quantized_dimension: int
    block_size: int
    kind: str  # "none", "per-tensor", "per-axis", "blockwise", "multi-axis", "custom"
    details: dict[str, Any] | None  # the details union's table, with its name under "type"
    def quantize(
        self,
        x: ArrayLike,
        /,
        *,
        narrow_range: bool = False,
        rounding: _QuantizeRounding = "away",
        out: NDArray[Any] | None = None,
        num_threads: int | None = None,
    ) -> NDArray[Any]: ...
    def dequantize(
        self,
        q: ArrayLike,
        /,
        *,
        dtype: DTypeLike = "float32",
        out: NDArray[Any] | None = None,
        num_threads: int | None = None,
    ) -> NDArray[Any]: ...
    def __bool__(self) -> bool: ...
    def __str__(self) -> str: ...  # Netron's line, or one line a channel
    def _repr_html_(self) -> str: ...

@final
class Requantization:
    """requantize's parameters, checked and prepared once, for many arrays."""

    def __new__(
        cls,
        multiplier: ArrayLike,
        zero_point: ArrayLike = 0,
        *,
        input_zero_point: ArrayLike = 0,
        dtype: DTypeLike = "int8",
        axis: int | None = None,
        rounding: _RequantizeRounding = "double",
    ) -> Self: ...
    @property
    def multiplier(self) -> NDArray[np.float64]: ...  # read-only: of the shape (), or one a channel
    @property
    def zero_point(self) -> NDArray[np.int32]: ...
    @property
    def input_zero_point(self) -> NDArray[np.int32]: ...
    @property
    def axis(self) -> int | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def rounding(self) -> _RequantizeRounding: ...
    def requantize(
        self, q: ArrayLike, /, *, out: NDArray[Any] | None = None, num_threads: int | None = None
    ) -> NDArray[Any]: ...

@final
class Tensor:
    model: Model
    subgraph: Subgraph
    index: int
    name: str
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]  # equals shape where the file stores none
    type: TensorType | Any  # an int where the schema does not know it
    dtype: np.dtype[Any]
    is_variable: bool
    is_constant: bool
    has_rank: bool
    buffer: int  # index into model.buffers; 0: none
    external_buffer: ExternalBuffer | None
    nbytes: int  # by shape and type; of strings, the buffer's size
    quantization: Quantization
    sparsity: dict[str, Any] | None
    variant_tensors: list[dict[str, Any]]
    producer: Operator | None
    consumers: list[Operator]
    data: NDArray[Any] | None  # read-only; None: not a constant.  Sparse: the stored values, flat
    def dequantized(self) -> NDArray[np.float32]: ...
    def stored(self, field: str, /) -> Any: ...  # a schema field as stored; None: not stored
    def _is_same(self, other: Tensor, /) -> bool: ...
    def densify(self) -> NDArray[Any]: ...
    def plot(
        self,
        ax: Axes | None = None,
        *,
        bins: int | None = None,
        dequantized: bool = True,
        kind: Literal["histogram", "channels"] = "histogram",
        log: bool = False,
    ) -> Axes: ...
    def _repr_html_(self) -> str: ...

@final
class Operator:
    model: Model
    subgraph: Subgraph
    index: int
    name: str
    code: BuiltinOperator | Any  # an int where the schema does not know it
    version: int
    inputs: list[Tensor | None]  # None: -1, an optional input left out, or an index out of range
    outputs: list[Tensor | None]
    intermediates: list[Tensor | None]
    input_indices: tuple[int, ...]  # as stored
    output_indices: tuple[int, ...]
    intermediate_indices: tuple[int, ...]
    mutating_variable_inputs: list[bool]
    options: dict[str, Any]  # builtin options, or a custom operator's decoded flexbuffer
    options_type: str | None  # "Conv2DOptions", "flexbuffer"
    custom_options: bytes | None
    debug_metadata_index: int
    multiply_adds: int | None  # of one run, from the shapes in the file; None: not known
    def _repr_html_(self) -> str: ...

@final
class Subgraph:
    model: Model
    index: int
    name: str | None
    tensors: Sequence[Tensor]
    operators: Sequence[Operator]
    inputs: list[Tensor | None]
    outputs: list[Tensor | None]
    input_indices: tuple[int, ...]
    output_indices: tuple[int, ...]
    debug_metadata_index: int

    def _unlike(self, other: Subgraph, /) -> tuple[list[int], list[int]] | None: ...
    def _facts(
        self, tensor_type: type[_TensorFacts], constant_type: type[_ConstantFacts], /
    ) -> tuple[
        list[_ConstantFacts | None],
        list[tuple[str, list[_TensorFacts | None], list[_TensorFacts | None], list[_ConstantFacts] | None, int | None]],
    ]: ...

@final
class DetailsList(list[_Details]):
    """get_tensor_details' list, whose dicts are made at its first use."""

@disjoint_base
class Model:
    """A .tflite file, open."""

    def __new__(cls, source: str | os.PathLike[str] | _SupportsBuffer | IO[bytes]) -> Self: ...
    path: str | None
    nbytes: int  # of the whole file
    has_identifier: bool
    version: int
    description: str
    min_runtime_version: str | None
    operator_codes: Sequence[OperatorCode]
    subgraphs: Sequence[Subgraph]
    tensors: Sequence[Tensor]  # these four: of subgraph 0
    operators: Sequence[Operator]
    inputs: list[Tensor | None]
    outputs: list[Tensor | None]
    signatures: Sequence[Signature]
    metadata: Mapping[str, bytes]
    buffers: Sequence[Buffer]
    external_buffers: Sequence[ExternalBuffer]
    problems: list[Problem]
    _file: NDArray[np.uint8]  # all bytes of the file, a view
    _identity: tuple[int, int] | None  # the mapped file's device and inode
    def get_tensor_details(self, subgraph_index: int = 0) -> list[_Details]: ...
    def get_input_details(self, subgraph_index: int = 0) -> list[_Details]: ...
    def get_output_details(self, subgraph_index: int = 0) -> list[_Details]: ...
    def summary(self) -> Summary: ...
    def view(
        self,
        other: Source | None = None,
        *,
        samples: Iterable[Any] | Mapping[str, Any] | None = None,
        profile: bool = False,
        output: str | os.PathLike[str] | None = None,
        num_threads: int | None = None,
        max_memory: int | None = None,
        max_multiply_adds: int | None = None,
    ) -> View: ...
    def __str__(self) -> str: ...  # the listing
    def _repr_html_(self) -> str: ...

def filetype(head: _SupportsBuffer, /) -> str | None: ...  # what a file is that is no model
def decode_flexbuffer(buffer: _SupportsBuffer, /) -> Any: ...  # dict, list, int, float, bool, str, bytes or None
def _flexbuffer_number_at(buffer: _SupportsBuffer, key: str, /) -> tuple[int, int] | None: ...
def schema_tables() -> dict[str, list[tuple[str, int, str, Any]]]: ...  # name -> (field, slot, kind, default)
def schema_enums() -> dict[str, list[tuple[str, int]]]: ...
def schema_unions() -> dict[str, list[tuple[str, int]]]: ...
def schema_builtins() -> list[tuple[str, int, str | None]]: ...  # name, code, options table
def problem_kinds() -> list[tuple[str, str, str]]: ...  # code, severity, text
def statuses() -> list[tuple[str, str, str]]: ...  # name, exception, text

# ---- a model's tables, to be changed and written; tq/editing/fields.py and tq/editing/editor.py ----

@final
class _Node:
    """A table."""

    type: str | None
    tree: _Tree
    def get(self, field: str, /) -> Any: ...
    def has(self, field: str, /) -> bool: ...
    def length(self, field: str, /) -> int: ...
    def numbers(self, field: str, /) -> tuple[int, ...]: ...
    def store(self, field: str, value: Any, /) -> bool: ...
    def set(self, field: str, value: Any, /) -> None: ...
    def unknown_slots(self) -> list[int]: ...

def _quantize_into(
    node: _Node, w: ArrayLike, axis: int | None, dtype: str, block_size: int | None, label: str
) -> tuple[int, ...]: ...  # the shape of the scales; both are made when the model is written
def _quantize_from(
    node: _Node,
    source: _Node,
    shape: tuple[int, ...],
    axis: int | None,
    dtype: str,
    block_size: int | None,
    label: str,
) -> tuple[int, ...] | None: ...  # the same of another Buffer's; None: its bytes are no floats of that shape
def _halves_from(node: _Node, source: _Node, shape: tuple[int, ...]) -> bool: ...  # as float16; False as None above
def _become_quantized(
    tensor: _Node, buffer: _Node, index: int, type: int, axis: int
) -> None: ...  # makes a Tensor theirs
def _scales_of(buffer: _Node, /) -> NDArray[np.float32]: ...  # now

@final
class _Tree:
    def __new__(cls, model: Model | None = None) -> Self: ...
    root: _Node
    end: int
    lost: int
    changes: int
    def make(self, table: str, /) -> _Node: ...
    def copy(self, node: _Node, /) -> _Node: ...
    def size(self, share_constants: bool = False, limit: int = ...) -> int: ...
    @overload
    def write(
        self,
        *,
        share_constants: bool = False,
        trailing: Callable[[int], bytes] | None = None,
        limit: int = ...,
    ) -> bytes: ...
    @overload
    def write(
        self,
        descriptor: int,
        share_constants: bool = False,
        trailing: Callable[[int], bytes] | None = None,
        limit: int = ...,
    ) -> int: ...

def callees() -> list[tuple[str, str, str, str, str]]:
    """Options that name subgraphs: (operator, options table, field, number of inputs, number of outputs)."""

def tensor_types() -> list[tuple[str, int, str]]: ...  # name, bits of an element, dtype; by TensorType
def integer_types() -> list[tuple[str, int, int]]: ...  # name, least value, greatest value

# ---- fixed point: an array where an argument is one, else a scalar ----

@final
class QuantizedMultiplier(structseq[Any], tuple[Any, Any]):
    __match_args__: Final = ("multiplier", "shift")
    @property
    def multiplier(self) -> Any: ...
    @property
    def shift(self) -> Any: ...
    @property
    def error(self) -> Any: ...  # no item of the tuple
    @property
    def bits(self) -> int: ...  # no item of the tuple

def quantize_multiplier(real: ArrayLike, *, rounding: str = "double", bits: int = 31) -> QuantizedMultiplier: ...
def multiply_by_quantized_multiplier(
    x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike, rounding: str = "double"
) -> Any: ...
def multiply_by_quantized_multiplier_int64(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Any: ...
def rounding_divide_by_pot(x: ArrayLike, exponent: ArrayLike) -> Any: ...
def saturating_rounding_doubling_high_mul(a: ArrayLike, b: ArrayLike) -> Any: ...

# ---- parameters ----

@final
class QuantizationParams(structseq[Any], tuple[Any, Any]):
    __match_args__: Final = ("scale", "zero_point")
    @property
    def scale(self) -> Any: ...
    @property
    def zero_point(self) -> Any: ...

@final
class QuantizedWeights(structseq[Any], tuple[NDArray[np.integer[Any]], Any]):
    __match_args__: Final = ("codes", "scale")
    @property
    def codes(self) -> NDArray[np.integer[Any]]: ...
    @property
    def scale(self) -> Any: ...
    @property
    def zero_point(self) -> np.int32: ...  # 0, but for rule "toco"; no item of the tuple

def choose_quantization_params(
    min: ArrayLike,
    max: ArrayLike,
    dtype: DTypeLike = "int8",
    *,
    symmetric: bool = False,
    narrow_range: bool = False,
    rule: str = "toco",
) -> QuantizationParams: ...
def bias_quantization_params(input_scale: ArrayLike, weight_scale: ArrayLike) -> QuantizationParams: ...
def quantize_bias(b: ArrayLike, input_scale: ArrayLike, weight_scale: ArrayLike, dtype: DTypeLike = "int32") -> Any: ...
def quantize_weights(
    w: ArrayLike,
    axis: int | None,
    dtype: DTypeLike = "int8",
    *,
    rule: str | None = None,
    scale: ArrayLike | None = None,
    block_size: int | None = None,
    min: float | None = None,
    max: float | None = None,
    narrow_range: bool = False,
) -> QuantizedWeights: ...
def fit_scales_to_bias(weight_scale: ArrayLike, input_scale: ArrayLike, b: ArrayLike) -> tuple[Any, Any]: ...
def rules() -> dict[str, dict[str, str]]: ...

# ---- fake quantization ----

def fake_quant(
    x: ArrayLike,
    min: ArrayLike,
    max: ArrayLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    axis: int | None = None,
    *,
    rule: str = "tflite",
    num_threads: int | None = None,
) -> Any: ...
def fake_quant_gradient(
    dy: ArrayLike,
    x: ArrayLike,
    min: ArrayLike,
    max: ArrayLike,
    num_bits: int = 8,
    narrow_range: bool = False,
    axis: int | None = None,
    *,
    num_threads: int | None = None,
) -> tuple[Any, Any, Any]: ...

# ---- error measures ----

def sqnr_db(x: ArrayLike, y: ArrayLike, axis: int | None = None, *, num_threads: int | None = None) -> Any: ...
def mse(x: ArrayLike, y: ArrayLike, axis: int | None = None, *, num_threads: int | None = None) -> Any: ...
def max_error(x: ArrayLike, y: ArrayLike, axis: int | None = None, *, num_threads: int | None = None) -> Any: ...
def cosine(x: ArrayLike, y: ArrayLike, axis: int | None = None, *, num_threads: int | None = None) -> Any: ...

# ---- observers' array work; tq/calibration/observers.py ----

_LEAST_BINS: int
_MOST_BINS: int
_LEAST_EXPONENT: int

_Doubles = NDArray[np.float64]
_Exponents = NDArray[np.int32]
_Counts = NDArray[np.uint64]

def _default_threads() -> int: ...  # TQ_NUM_THREADS, or the processors
def _reals(x: ArrayLike, /) -> NDArray[np.floating[Any]]: ...
def _observe(x: ArrayLike, axis: int | None, num_threads: int | None) -> tuple[_Doubles, _Doubles, _Counts]: ...
def _histogram_grow(exponents: _Exponents, counts: _Counts, min: _Doubles, max: _Doubles) -> None: ...
def _histogram_fold(exponents: _Exponents, counts: _Counts, to: _Exponents) -> None: ...
def _histogram_counts(
    x: ArrayLike, axis: int | None, exponents: _Exponents, bins: int, num_threads: int | None
) -> _Counts: ...
def _hessian_add(
    z: NDArray[np.float32],
    geometry: tuple[Any, ...],
    products: NDArray[np.float64] | None,
    sums: NDArray[np.float64],
    num_threads: int | None,
    /,
) -> None: ...
def _hessian_add_pair(
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    geometry: tuple[Any, ...],
    own: NDArray[np.float64],
    cross: NDArray[np.float64],
    sums: NDArray[np.float64],
    num_threads: int | None,
    /,
) -> None: ...
def _cholesky(a: NDArray[np.float64], num_threads: int | None, /) -> bool: ...
def _multiply_rows(
    a: NDArray[np.float64],
    turned: NDArray[np.float64],
    triangle: NDArray[np.float64] | None,
    num_threads: int | None,
    /,
) -> NDArray[np.float64]: ...
def _round_rows(
    method: str,
    weights: NDArray[np.float64],
    order: NDArray[np.int64],
    square: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    scales: NDArray[np.float32],
    block: int,
    halves: bool,
    factors: NDArray[np.float64],
    sweeps: int,
    refit: bool,
    least: int,
    most: int,
    num_threads: int | None,
    /,
) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.float64]]: ...
def _histogram_range(
    exponents: _Exponents,
    counts: _Counts,
    min: _Doubles,
    max: _Doubles,
    method: str,
    percentile: float,
    dtype: DTypeLike,
    symmetric: bool,
    narrow_range: bool,
    rule: str,
) -> tuple[_Doubles, _Doubles]: ...
def _requantize_steps(
    acc: int, multiplier: float | tuple[int, int], zero_point: int, rounding: str, dtype: DTypeLike
) -> tuple[dict[str, Any], str, int, int]: ...

# ---- arrays ----

class _KernelVariant(TypedDict):
    name: str
    isa: str
    available: bool
    chosen: bool

_QuantizeRounding = Literal["away", "even"]
_RequantizeRounding = Literal["double", "single", "up", "float64-away", "float32-even"]
_NarrowType = Literal["int4", "uint4", "int2"]

@overload
def quantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    dtype: Literal["int8"] = "int8",
    axis: int | None = None,
    block_size: int | None = None,
    narrow_range: bool = False,
    rounding: _QuantizeRounding = "away",
    out: NDArray[np.int8] | None = None,
    num_threads: int | None = None,
) -> NDArray[np.int8]: ...
@overload
def quantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    dtype: DTypeLike | _NarrowType,
    axis: int | None = None,
    block_size: int | None = None,
    narrow_range: bool = False,
    rounding: _QuantizeRounding = "away",
    out: NDArray[Any] | None = None,
    num_threads: int | None = None,
) -> NDArray[Any]: ...
@overload
def dequantize(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    dtype: Literal["float32"] = "float32",
    out: NDArray[np.float32] | None = None,
    num_threads: int | None = None,
) -> NDArray[np.float32]: ...
@overload
def dequantize(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    dtype: DTypeLike,
    out: NDArray[Any] | None = None,
    num_threads: int | None = None,
) -> NDArray[Any]: ...
@overload
def requantize(
    q: ArrayLike,
    multiplier: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    input_zero_point: ArrayLike = 0,
    dtype: Literal["int8"] = "int8",
    axis: int | None = None,
    rounding: _RequantizeRounding = "double",
    out: NDArray[np.int8] | None = None,
    num_threads: int | None = None,
) -> NDArray[np.int8]: ...
@overload
def requantize(
    q: ArrayLike,
    multiplier: ArrayLike,
    zero_point: ArrayLike = 0,
    *,
    input_zero_point: ArrayLike = 0,
    dtype: DTypeLike,
    axis: int | None = None,
    rounding: _RequantizeRounding = "double",
    out: NDArray[Any] | None = None,
    num_threads: int | None = None,
) -> NDArray[Any]: ...
def pack(values: ArrayLike, dtype: DTypeLike | _NarrowType) -> NDArray[np.uint8]: ...
def unpack(
    packed: bytes | bytearray | memoryview | NDArray[Any], shape: int | Iterable[int], dtype: DTypeLike | _NarrowType
) -> NDArray[Any]: ...
def kernel_variants() -> list[_KernelVariant]: ...
def _force_isa(isa: str | None) -> None: ...

@disjoint_base
class Interpreter:
    """The base class of tq.Interpreter."""

    def _open(
        self,
        model: Model,
        numerics: str,
        num_threads: int,
        preserve_all_tensors: bool,
        max_memory: int,
        max_multiply_adds: int,
        registered: dict[str, Any],
        /,
    ) -> None: ...
    def _allocate(self, subgraph: int = 0, /) -> None: ...
    def _invoke(self, subgraph: int = 0, begin: int = 0, end: int = -1, /) -> None: ...
    def invoke(self) -> None: ...
    def _resize(self, tensor_index: int, shape: tuple[int, ...], subgraph: int = 0, /) -> None: ...
    def _view(self, tensor_index: int, subgraph: int = 0, /) -> NDArray[Any]: ...
    def _changed_shapes(self, subgraph: int = 0, /) -> dict[int, tuple[int, ...]]: ...
    def _given_types(self, subgraph: int = 0, /) -> dict[int, type]: ...
    def _memory_plan(
        self, subgraph: int = 0, /
    ) -> tuple[int, list[tuple[int, int, int, int, int]], list[tuple[int, int, int]], list[tuple[int, int]]]: ...
    def _memory_used(self) -> tuple[int, int]: ...
    def _profile_start(self, on: bool, /) -> None: ...
    def _backends(self, subgraph: int = 0, /) -> list[tuple[str, str, str | None]]: ...
    def _profile_read(self, subgraph: int = 0, /) -> list[tuple[int, int, bool]]: ...
    def set_tensor(self, tensor_index: int, value: ArrayLike, subgraph_index: int = 0) -> None: ...
    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Any: ...
    def reset_all_variables(self) -> None: ...

def counted_operators() -> list[str]: ...
def operators() -> tuple[list[str], list[str]]: ...
