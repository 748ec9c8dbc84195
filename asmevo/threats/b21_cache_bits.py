"""B21: cache bits that leave data stale for another XCD or kernel."""

from __future__ import annotations

from asmevo.gates.verdict import Gate
from asmevo.threats.threat import Threat
from asmevo.threats.trick import edited, replaced
from asmevo.threats.weaker import Weaker

_STORE = "buffer_store_dword v13, v9, s[4:7], 0 offen"
_SHARED = "global_store_dword v2, v4, s[4:5]"
_ATOMIC = "global_atomic_add_f32 v5, v4, s[8:9]"

THREATS = (
    *(Threat("B21", f"a store with {bits}", "topksoftmax",
             edited(replaced(_STORE, f"{_STORE} {bits}")), Gate.G1, ("coherence",), Weaker.STATIC)
      for bits in ("nt", "sc0", "sc1", "sc0 sc1", "sc0 nt sc1")),
    Threat("B21", "a store that others wait for stays in this L2", "scaled_sum",
           edited(replaced(_SHARED, _SHARED)), Gate.G1, ("coherence",), Weaker.STATIC),
    Threat("B21", "a store goes through to one cache less", "scaled_sum",
           edited(replaced(_SHARED, f"{_SHARED} sc1")), Gate.G1, ("coherence",), Weaker.STATIC),
    Threat("B21", "an atomic is done in this L2 alone", "scaled_sum",
           edited(replaced(_ATOMIC, _ATOMIC)), Gate.G1, ("coherence",), Weaker.STATIC),
    Threat("B21", "a load takes what this XCD has", "scaled_sum",
           edited(replaced("global_load_dword v3, v2, s[6:7]",
                           "global_load_dword v3, v2, s[6:7]")),
           Gate.G1, ("coherence",), Weaker.STATIC),
)
