from __future__ import annotations

from asmevo.threats.threat import Threat

THREATS: tuple[Threat, ...] = ()
