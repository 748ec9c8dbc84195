"""Matrix products of tokens with the experts they are routed to, as Triton's MoE kernels do them.

A slot is one of the ``top`` experts of a token: slot ``s`` belongs to token ``s // top``. Slots are
sorted by expert and padded to whole blocks of rows, every block has one expert.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asmevo.operation.block_scale_gemm import positive, scaled
from asmevo.operation.operation import Array, Arrays, Names, Operation


def sorted_slots(experts: Array, count: int, block: int, length: int) -> tuple[Array, Array, int]:
    """Slots by rising expert, each expert's padded to whole blocks with the number of slots.

    ``experts[slot]`` is below ``count``, or the slot is left out. Gives ``length`` slots, the
    expert of every block (-1 after the last) and how many entries are in use.
    """
    slots = np.full(length, len(experts), np.int32)
    owners = np.full(length // block, -1, np.int32)
    used = 0
    for expert in range(count):
        own = np.flatnonzero(experts == expert)
        blocks = -(-len(own) // block)
        slots[used:used + len(own)] = own
        owners[used // block:used // block + blocks] = expert
        used += blocks * block
    return slots, owners, used


@dataclass(frozen=True)
class RoutedBlockScaleGemm(Operation):
    """``c[slot] = weight[slot] * (a[token] * a_scale[token]) @ (b[expert] * b_scale[expert])^T``.

    fp8 ``a`` (T by K) and ``b`` (E by N by K) with scales for ``group`` columns and ``group`` by
    ``group`` blocks; ``block`` rows of the sorted slots share an expert. One expert gets no token.
    """

    block: int
    top: int
    group: int = 128

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        tokens, experts = int(names["T"]), int(names["E"])
        # Distinct experts for each token, and none for expert 1.
        open_experts = np.delete(np.arange(experts), 1)
        routed = np.concatenate([rng.permutation(open_experts)[:self.top] for _ in range(tokens)])
        slots, owners, used = sorted_slots(routed, experts, self.block, len(arrays["slots"]))
        return {
            "a_scale": positive(rng, arrays["a_scale"], 0.5, 2.0),
            "b_scale": positive(rng, arrays["b_scale"], 0.5, 2.0),
            "slots": slots, "owners": owners, "used": np.array([used], np.int32),
            "weights": positive(rng, arrays["weights"], 0.1, 1.0),
        }

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        n, k, experts = int(names["N"]), int(names["K"]), int(names["E"])
        groups = -(-k // self.group)
        a = scaled(arrays["a"].reshape(-1, k), arrays["a_scale"].reshape(-1, groups), 1, self.group)
        b = scaled(arrays["b"].reshape(experts, n, k),
                   arrays["b_scale"].reshape(experts, -1, groups), self.group, self.group)
        weights = arrays["weights"].astype(np.float64)
        result = np.full((len(weights), n), np.nan)
        for block, expert in enumerate(arrays["owners"][:arrays["used"][0] // self.block]):
            own = arrays["slots"][block * self.block:(block + 1) * self.block]
            own = own[own < len(weights)]
            result[own] = (a[own // self.top] @ b[expert].T) * weights[own, None]
        return {"c": result.reshape(-1)}


@dataclass(frozen=True)
class RoutedLoraGemm(Operation):
    """``c[slice, slot] = a[token] @ table[slice][lora, expert]^T``: the shrinking half of LoRA on
    experts.

    Every adapter has a sorted list of its own; tokens belong to one adapter each. ``lora_ids``
    lists adapters and -1, and the slots of a disabled adapter are left alone. ``b0``, ``b1`` ...
    hold weights of (adapters, E, R, K); the kernel finds them through a table of addresses.
    """

    block: int
    top: int

    def prepare(self, arrays: Arrays, names: Names, rng: np.random.Generator) -> Arrays:
        tokens, experts, loras = int(names["T"]), int(names["E"]), int(names["L"])
        length = len(arrays["slots"]) // loras
        routed = np.concatenate([rng.permutation(experts)[:self.top] for _ in range(tokens)])
        adapter = np.repeat(rng.integers(0, loras, tokens), self.top)
        slots = np.full((loras, length), tokens * self.top, np.int32)
        owners = np.full((loras, length // self.block), -1, np.int32)
        used = np.zeros(loras, np.int32)
        for lora in range(loras):
            own = np.where(adapter == lora, routed, experts)
            slots[lora], owners[lora], used[lora] = sorted_slots(own, experts, self.block, length)
        enabled = np.ones(loras, np.int32)
        enabled[-1] = 0
        ids = np.arange(loras, dtype=np.int32)
        ids[0] = -1
        return {"slots": slots, "owners": owners, "used": used, "enabled": enabled,
                "lora_ids": rng.permutation(ids)}

    def reference(self, arrays: Arrays, names: Names) -> Arrays:
        k, rank = int(names["K"]), int(names["R"])
        experts, loras = int(names["E"]), int(names["L"])
        a = arrays["a"].astype(np.float64).reshape(-1, k)
        slot_count = int(names["T"]) * self.top
        slots = arrays["slots"].reshape(loras, -1)
        owners = arrays["owners"].reshape(loras, -1)
        before = arrays["c"].astype(np.float64).reshape(-1, slot_count, rank)
        result = before.copy()
        for index in range(len(before)):
            b = arrays[f"b{index}"].astype(np.float64).reshape(loras, experts, rank, k)
            for lora in arrays["lora_ids"]:
                if lora < 0 or not arrays["enabled"][lora]:
                    continue
                for block in range(arrays["used"][lora] // self.block):
                    own = slots[lora, block * self.block:(block + 1) * self.block]
                    own = own[own < slot_count]
                    result[index, own] = a[own // self.top] @ b[lora, owners[lora, block]].T
        return {"c": result.reshape(-1)}
