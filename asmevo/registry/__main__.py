"""``python -m asmevo.registry``."""

from __future__ import annotations

import sys

from asmevo.registry.command.line import main

if __name__ == "__main__":
    sys.exit(main())
