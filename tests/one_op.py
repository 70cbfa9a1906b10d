# SPDX-License-Identifier: Apache-2.0
"""LiteRT's own answers: models of one operator, run by its reference kernels in a process of their own.

As a script:  one_op.py jobs.npz answers.npz.  Job k is the arrays input_k, in_scale_k, in_zero_k, in_axis_k,
and out_dtype_k (a zero-length array of it), out_scale_k, out_zero_k, out_axis_k; no scales: a float tensor.
The answer is answer_k.
A process of its own, because the runtime aborts on what it does not like.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

CODES = {"float32": 0, "int32": 2, "uint8": 3, "int16": 7, "int8": 9}


def build(op, array, in_quant, out_dtype, out_quant):
    import flatbuffers
    from ai_edge_litert import schema_py_generated as s

    def tensor(name, dtype, shape, quant):
        t = s.TensorT()
        t.name, t.shape, t.type, t.buffer = name, list(shape), CODES[dtype], 0
        scale, zero, axis = quant
        if len(scale):
            t.quantization = q = s.QuantizationParametersT()
            q.scale, q.zeroPoint, q.quantizedDimension = [float(v) for v in scale], [int(v) for v in zero], int(axis)
        return t

    code, operator, graph, model = s.OperatorCodeT(), s.OperatorT(), s.SubGraphT(), s.ModelT()
    code.builtinCode = code.deprecatedBuiltinCode = op
    code.version = 3
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, [0], [1]
    graph.tensors = [
        tensor("in", array.dtype.name, array.shape, in_quant),
        tensor("out", out_dtype, array.shape, out_quant),
    ]
    graph.inputs, graph.outputs, graph.operators = [0], [1], [operator]
    model.version, model.operatorCodes, model.subgraphs = 3, [code], [graph]
    model.buffers = [s.BufferT()]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run(job):
    from ai_edge_litert import schema_py_generated as s
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    array, in_quant, out_dtype, out_quant = job
    op = s.BuiltinOperator.DEQUANTIZE if out_dtype == "float32" else s.BuiltinOperator.QUANTIZE
    interpreter = Interpreter(
        model_content=build(op, array, in_quant, out_dtype, out_quant),
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], array)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def answers(jobs):
    """What LiteRT computes for each (array, (scales, zero points, axis), out dtype, (scales, zero points, axis))."""
    with tempfile.TemporaryDirectory() as folder:
        asked, given = os.path.join(folder, "jobs.npz"), os.path.join(folder, "answers.npz")
        arrays = {}
        for k, (array, (in_scale, in_zero, in_axis), out_dtype, (out_scale, out_zero, out_axis)) in enumerate(jobs):
            arrays |= {
                f"input_{k}": array,
                f"in_scale_{k}": np.float32(in_scale),
                f"in_zero_{k}": np.int64(in_zero),
                f"in_axis_{k}": in_axis,
                f"out_dtype_{k}": np.empty(0, out_dtype),
                f"out_scale_{k}": np.float32(out_scale),
                f"out_zero_{k}": np.int64(out_zero),
                f"out_axis_{k}": out_axis,
            }
        np.savez(asked, **arrays)
        done = subprocess.run([sys.executable, __file__, asked, given], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        with np.load(given) as found:
            return [found[f"answer_{k}"] for k in range(len(jobs))]


def main(asked, given):
    with np.load(asked) as f:
        count = sum(name.startswith("input_") for name in f.files)
        jobs = [
            (
                f[f"input_{k}"],
                (f[f"in_scale_{k}"], f[f"in_zero_{k}"], f[f"in_axis_{k}"]),
                f[f"out_dtype_{k}"].dtype.name,
                (f[f"out_scale_{k}"], f[f"out_zero_{k}"], f[f"out_axis_{k}"]),
            )
            for k in range(count)
        ]
    np.savez(given, **{f"answer_{k}": run(job) for k, job in enumerate(jobs)})


if __name__ == "__main__":
    main(*sys.argv[1:])
