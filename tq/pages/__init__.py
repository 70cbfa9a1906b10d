# SPDX-License-Identifier: Apache-2.0
"""What HTML pages are made of: escaped words, tables, a style sheet, small pictures."""
