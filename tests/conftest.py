"""What all tests share."""

from __future__ import annotations

import sys
from pathlib import Path

# Tests hand functions of their own to spawned processes, which import them by the name that pytest
# gave the module (``tests.…``). Last, so that an installed asmevo stays the one under test.
sys.path.append(str(Path(__file__).parent.parent))
