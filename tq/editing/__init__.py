# SPDX-License-Identifier: Apache-2.0
"""Changing a model, and building one."""
