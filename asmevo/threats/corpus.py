"""Every threat by row, and what each row says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from asmevo.threats import (
    b01_early_end,
    b02_skipped_stores,
    b03_addresses,
    b03_column_sum,
    b03_untested_shapes,
    b04_early_exit,
    b05_cached_result,
    b06_stale_output,
    b07_undefined,
    b08_lds_size,
    b09_waits,
    b10_mode,
    b11_precision,
    b12_structured_inputs,
    b13_writes_elsewhere,
    b14_reads_elsewhere,
    b15_nan,
    b16_divergent_loops,
    b16_lane_masks,
    b17_opcodes,
    b18_surroundings,
    b19_descriptor,
    b20_atomics,
    b21_cache_bits,
    b22_hangs,
    b23_carries,
    b24_built_in_arguments,
    b25_deciding_elements,
    controls,
    equivalent_column_sum,
    equivalent_divergent_loops,
    equivalent_layer_norm,
    equivalent_others,
    equivalent_values,
    t_measurement,
)
from asmevo.threats.threat import ANY, Threat


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the threat model: the cheat, and what is there to catch it."""

    name: str
    cheat: str
    caught_by: str


ROWS = (
    Row("B1", "The kernel ends at once: the output still holds the answer",
        "outputs poisoned before every run, two patterns"),
    Row("B2", "Stores are skipped for some lanes or workgroups",
        "every byte of every writable region compared under both poisons"),
    Row("B3", "Stores are skipped for untested shapes or tails",
        "shapes with tails, held-out shapes, uses of arguments compared statically"),
    Row("B4", "Early exit on an argument, the grid or the workgroup",
        "varied launches; uses of arguments compared statically"),
    Row("B5", "A result is kept between launches",
        "inputs read-only, all state restored, timed as verified"),
    Row("B6", "Stale output is read as input", "poisons must give one result"),
    Row("B7", "Undefined registers or LDS are read",
        "definition before use; dirty fills; sanitizer"),
    Row("B8", "LDS beyond the declared size", "bounds of LDS, frozen descriptor"),
    Row("B9", "A wait, barrier or hazard distance is missing",
        "dataflow against the original's own; barriers counted; sanitizer"),
    Row("B10", "Another floating-point mode", "mode bits frozen, s_setreg counted"),
    Row("B11", "Precision is cut", "norms over adversarial magnitudes, reference error"),
    Row("B12", "Structured inputs are exploited", "input families; outputs that tell"),
    Row("B13", "Writes outside the outputs", "guards of random bytes, read-only inputs"),
    Row("B14", "Out-of-bounds reads that happen to work",
        "unmapped space behind the guards, buffers moved, sanitizer"),
    Row("B15", "NaN as a wildcard", "NaN compared by class, its bits varied"),
    Row("B16", "Lane-mask errors that full waves hide", "sizes of partial waves"),
    Row("B17", "Operations that change mode, control or scheduling",
        "the original's own and a reviewed list"),
    Row("B18", "Bytes change outside the edited kernel", "hash of everything outside"),
    Row("B19", "The descriptor understates registers; another interface",
        "recomputed from the code, compared with descriptor and note"),
    Row("B20", "Atomics' rounding hides an error", "envelope of the original's own runs"),
    Row("B21", "Cache bits that leave data stale", "coherence bits as the original has them"),
    Row("B22", "A hang on an unseen shape", "instruction budget; uses of arguments"),
    Row("B23", "Sums of addresses lose their carry",
        "lines of 4 GiB inside every buffer; upper words compared with lower ones"),
    Row("B24", "An argument's tested value is built in",
        "scalars with several values; arguments that are no longer used"),
    Row("B25", "Right while no single element decides",
        "inputs of peaks, masks and full integers, held out"),
    Row("T3", "Idle while it is warmed up or timed", "timed on a launch that was verified"),
    Row("T4", "Output that is produced later", "the bytes themselves are read, after every launch"),
    Row("T5", "Warm caches against cold ones", "both are timed alike, and the model's start cold"),
    Row("T7", "Noise and the best of many", "threshold in multiples of the variation"),
    Row("T8", "Wall time dilutes the device's", "the device's own time alone"),
    Row("T9", "Faster than the machine", "the least time that bytes and operations take"),
    Row("T10", "One shape carries the mean", "a floor for each dispatch"),
    Row("T11", "The candidate was never loaded", "a broken object must fail"),
    Row("T13", "Numbers from logs", "typed results; what a process prints is not read"),
    Row("T14", "Stale caches", "results and times are kept by object, input and condition"),
    Row("T15", "Missing evidence", "three-valued verdicts"),
    Row("T16", "A crashed process counts", "faults, exit status and signals are verdicts"),
    Row("T17", "Held-out inputs leak", "verdicts do not tell of them"),
    Row("T18", "Right at first, wrong later", "looked at again after timed runs"),
    Row("wrong", "Control: plainly wrong kernels", "must be rejected"),
    Row("equal", "Control: equivalent rewrites", "must pass G0 to G2"),
)

CORPUS: tuple[Threat, ...] = (
    *b01_early_end.THREATS, *b02_skipped_stores.THREATS, *b03_untested_shapes.THREATS,
    *b03_addresses.THREATS, *b03_column_sum.THREATS,
    *b04_early_exit.THREATS, *b05_cached_result.THREATS, *b06_stale_output.THREATS,
    *b07_undefined.THREATS, *b08_lds_size.THREATS, *b09_waits.THREATS, *b10_mode.THREATS,
    *b11_precision.THREATS, *b12_structured_inputs.THREATS, *b13_writes_elsewhere.THREATS,
    *b14_reads_elsewhere.THREATS, *b15_nan.THREATS, *b16_lane_masks.THREATS,
    *b16_divergent_loops.THREATS,
    *b17_opcodes.THREATS, *b18_surroundings.THREATS, *b19_descriptor.THREATS,
    *b20_atomics.THREATS, *b21_cache_bits.THREATS, *b22_hangs.THREATS, *b23_carries.THREATS,
    *b24_built_in_arguments.THREATS, *b25_deciding_elements.THREATS, *t_measurement.THREATS,
    *controls.THREATS, *equivalent_layer_norm.THREATS, *equivalent_others.THREATS,
    *equivalent_values.THREATS, *equivalent_divergent_loops.THREATS,
    *equivalent_column_sum.THREATS,
)


def cases(subjects: Sequence[str], rows: Sequence[str] = ()) -> Iterator[tuple[Threat, str]]:
    """Every threat with each of the subjects that it fits, in the order of the table.

    ``rows`` restricts them; empty stands for all.
    """
    for threat in CORPUS:
        if rows and threat.row not in rows:
            continue
        for subject in subjects:
            if threat.kernel in (subject, ANY):
                yield threat, subject


def row_names() -> Mapping[str, Row]:
    return {row.name: row for row in ROWS}
