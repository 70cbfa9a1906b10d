# SPDX-License-Identifier: Apache-2.0
"""Elements of HTML pages: escaped texts, tables, a style sheet, small pictures."""
