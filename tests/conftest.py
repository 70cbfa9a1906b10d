# SPDX-License-Identifier: Apache-2.0
"""Options and fixtures that several test files share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CORPUS = Path(os.environ.get("TQ_MODELS") or ROOT.parent / "shared" / "models")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the tests that take minutes")


def pytest_collection_modifyitems(config, items):
    # The longest test begins first, or one of several processes ends with it alone.
    items.sort(key=lambda item: item.name != "test_kernels[aarch64]")
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="takes minutes; run with --slow"))


@pytest.fixture(scope="session")
def corpus():
    """Every real model that lies beside the repository, as sorted paths.  For tests marked `corpus`."""
    files = sorted(CORPUS.rglob("*.tflite"))
    if not files:
        pytest.skip(f"no models in {CORPUS}; TQ_MODELS names another folder")
    return files


@pytest.fixture(scope="session")
def objects(tmp_path_factory):
    """The folder of compiled.py, which all processes of a run share."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return Path(os.environ.get("TQ_OBJECTS") or folder / "objects")
