# SPDX-License-Identifier: Apache-2.0
import pytest


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests that take minutes")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        skip = pytest.mark.skip(reason="takes minutes: run with --slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)
