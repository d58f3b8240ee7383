"""The command line: ``python -m raxol_sync``, also installed as ``raxol-sync``. Floor 5."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from raxol_sync.cli.run import main as run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; ``arguments`` left out are this process's."""
    return run(sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(main())
