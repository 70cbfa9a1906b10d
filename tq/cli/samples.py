# SPDX-License-Identifier: Apache-2.0
"""--samples: files of arrays and folders of pictures, as samples and labels."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from tq.cli.commands import Failure, read_array, refusing

if TYPE_CHECKING:
    from tq._core import Model


def _key_and_file(text: str, model: Model) -> tuple[str | None, str]:
    """FILE, or KEY=FILE."""
    key, equals, path = text.partition("=")
    keyed = bool(equals) and (any(item.key == key for item in model.signatures) or not os.path.exists(text))
    return (key, path) if keyed else (None, text)


def sample_files(given: list[str], model: Model) -> list[str]:
    """The files that --samples names."""
    return [_key_and_file(text, model)[1] for text in given]


def samples_of(args: argparse.Namespace, model: Model, quantizes: bool = False, labels: bool = False) -> Any:
    """The samples that --samples names, FILE for the first subgraph and KEY=FILE for signature KEY; None: none are.

    quantizes: whether real values are quantized for integer inputs.  labels: pairs of samples and labels.
    At most --max-samples, where the command has it.
    """
    from tq.calibration.samples import Inputs

    most = getattr(args, "max_samples", None) or None
    if not args.samples:
        for name, given in (("--mean", args.mean), ("--std", args.std), ("--max-samples", most)):
            if given is not None:
                raise Failure(f"{name} is given and has no effect without --samples")
        return None
    found: list[Any] = []
    for text in args.samples:
        key, path = _key_and_file(text, model)
        with refusing(text):
            inputs = Inputs(model, key, quantizes)
            for sample, label in inputs.labelled(_data(args, path, inputs, model), "the samples"):
                if most is not None and len(found) >= most:
                    break
                value: Any = (sample, label) if labels else sample
                found.append((key, value) if key is not None else value)
    return found


def _data(args: argparse.Namespace, path: str, inputs: Any, model: Model) -> Any:
    """A folder of pictures, or the arrays of a file."""
    from tq.calibration.pictures import Pictures

    scaling = (args.mean, args.std)
    if not os.path.isdir(path):
        if scaling != (None, None):
            raise Failure(f"--mean and --std are for a folder of pictures; {path} is a file")
        arrays = read_array(path)
        if not isinstance(arrays, dict) and len(inputs.tensors) != 1:
            raise ValueError(f"there are {len(inputs.tensors)} inputs: an .npz with an array for each is needed")
        return arrays
    if len(inputs.tensors) != 1:
        raise ValueError(f"a folder of pictures is one input; the model has {len(inputs.tensors)}")
    return Pictures(path, inputs.tensors[0], model, *scaling)
