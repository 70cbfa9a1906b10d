# SPDX-License-Identifier: Apache-2.0
"""tq/schema_enums.pyi: the schema's enums as type checkers and editors read them.

    python tests/support/enum_stubs.py        # writes the file anew

At run time tq/enums.py builds the same enums from the same rows.
"""

from pathlib import Path

from tq import _core

STUB = Path(__file__).parents[2] / "tq" / "schema_enums.pyi"
HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
"""The schema's enums, for type checkers; made by tests/support/enum_stubs.py from the core's rows."""

from enum import IntEnum
'''


def document():
    """The stub's text."""
    enums = sorted(_core.schema_enums().items())
    text = HEAD + "\n__all__ = [\n" + "".join(f'    "{name}",\n' for name, _ in enums) + "]\n"
    for name, members in enums:
        text += f"\nclass {name}(IntEnum):\n" + "".join(f"    {member} = {value}\n" for member, value in members)
    return text


if __name__ == "__main__":
    STUB.write_text(document(), encoding="utf-8")
