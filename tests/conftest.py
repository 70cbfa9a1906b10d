# SPDX-License-Identifier: Apache-2.0
"""Options and fixtures that several test files share."""

import os
from pathlib import Path

import pytest
from commands import run  # noqa: F401  (a fixture)
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]

CORPUS = Path(os.environ.get("TQ_MODELS") or ROOT.parent / "shared" / "models")

# Tests that the default run leaves out: {option and marker: (their processor time, the tiers that the option runs)}.
TIERS = {"slow": ("45 minutes", {"slow"}), "thorough": ("an hour", {"slow", "thorough"})}

# Times depend on the machine and on sanitizers: no property fails by them.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_addoption(parser):
    for tier, (time, _) in TIERS.items():
        parser.addoption(
            f"--{tier}", action="store_true", help=f"also run the {tier} tests, which take {time} of processor time"
        )


def pytest_collection_modifyitems(config, items):
    # The longest test begins first, or one of several processes ends with it alone.
    items.sort(key=lambda item: item.name != "test_kernels[aarch64]")
    chosen = {name for tier, (_, names) in TIERS.items() if config.getoption(f"--{tier}") for name in names}
    for item in items:
        for tier in TIERS.keys() - chosen:
            if tier in item.keywords:
                item.add_marker(pytest.mark.skip(reason=f"all {tier} tests take {TIERS[tier][0]}; run with --{tier}"))


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
