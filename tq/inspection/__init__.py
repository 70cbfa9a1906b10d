# SPDX-License-Identifier: Apache-2.0
"""Looking at a model: listing, summary, differences, export, pages in notebooks."""
