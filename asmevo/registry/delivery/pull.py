"""Hand out a validated replacement, or say why not."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from asmevo.registry.errors import (
    BlobCorruptError,
    BlobMissingError,
    PullError,
    PullRefusal,
    RegistryError,
    StatementError,
    cannot,
)
from asmevo.registry.records import ReplacementRecord
from asmevo.registry.signing.trust import TrustList, find_trust

if TYPE_CHECKING:
    from asmevo.codeobject.target import Target
    from asmevo.registry.delivery.offers import Offer
    from asmevo.registry.registry import Registry

MOST_ORIGINAL_BYTES = 1 << 30


class Policy(StrEnum):
    """Which of several replacements is the first choice; measured ones are ahead in each.

    ``BEST`` is the one of the highest speedup, ``NEWEST`` the one that was committed last.
    ``CONFIRMED`` takes only what a second timing in a fresh process confirmed, and goes by the
    lower of the two speedups.
    """

    BEST = "best"
    CONFIRMED = "confirmed"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A replacement that was preferred to the one handed out, but refused."""

    object_sha256: str
    speedup: float
    code: PullRefusal
    reason: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """The bytes of a drop-in code object, and what is known of it.

    ``signers`` are the keys in hexadecimal that signed its statement, with a trust list those of
    them that are trusted.
    """

    data: bytes
    record: ReplacementRecord
    statement_sha256: str = ""
    signers: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def pull(registry: Registry | str | Path, *, original: str | Path, kernel: str | None = None,
         device: str | None = None, policy: Policy | str = Policy.BEST,
         trust: str | Path | None = None, allow_modelled: bool = False,
         allow_weaker: bool = False) -> Replacement:
    """The best validated replacement of an original.

    ``original`` is a SHA-256 or the path of the file itself. ``kernel`` is needed only if kernels
    of one object were improved separately. ``device`` is the target ID of where the result will
    run, as rocminfo prints it (``gfx942:sramecc+:xnack-``): what fixes a feature that it does not
    name is refused. ``trust`` is a file of public keys, one of which must have signed the
    replacement; without it the file that ``ASMEVO_TRUSTED_KEYS`` names counts, or
    ``~/.config/asmevo/trusted_keys``, and without any of them signatures are checked, but not
    demanded.

    A modelled speedup is handed out only with ``allow_modelled``, and only where nothing measured
    is accepted; one that was judged by less than the default gates only with ``allow_weaker``. One
    that a second timing in a fresh process did not confirm is withdrawn and never handed out.

    What is refused makes room for the next best, as ``skipped`` tells. Damage does not: were it
    passed over, whoever can damage the best replacement would choose which one runs. So whatever
    shows that rows, statements, signatures or content were changed ends the pull, for any
    replacement of the original as far as rows go.

    Raises `PullError`; `RegistryError` when registry, trust list or file cannot be read.
    """
    from asmevo.registry.delivery.offers import offers as offers_of

    registry, policy = _opened(registry), _policy(policy)
    wanted = None if device is None else _target(device)
    trusted = find_trust(trust, *registry.folders)
    sha256, given = _original(original)
    try:
        offers = offers_of(registry, sha256)
    except StatementError as error:
        raise PullError(PullRefusal.STATEMENT_MISMATCH, str(error)) from error
    offers = _of_one_kernel(offers, sha256, kernel)
    refused: list[tuple[Offer, PullError]] = []
    check = _Check(registry, sha256, given, wanted, policy, trusted, allow_modelled, allow_weaker)
    for offer in sorted(offers, key=lambda o: _rank(o.record, policy)):
        try:
            data = check.content(offer)
        except PullError as error:
            if error.code.is_damage:
                raise
            refused.append((offer, error))
            continue
        return Replacement(
            data, offer.record, "" if offer.statement is None else offer.statement.sha256,
            check.counting(offer.signers), tuple(
                Skipped(o.record.object_sha256, o.record.speedup, e.code, str(e))
                for o, e in refused))
    raise _refusal([error for _, error in refused])


def original_sha256(original: str | Path) -> str:
    """The SHA-256 that ``original`` is, or that the file of that path has."""
    return _original(original)[0]


def _original(original: str | Path) -> tuple[str, bytes | None]:
    """Hash and, where a file is given, content: of the same reading, for it may be replaced."""
    text = str(original)
    if isinstance(original, str) and len(text) == 64 and not set(text.lower()) - _HEX:
        return text.lower(), None
    try:
        with Path(original).open("rb") as file:
            data = file.read(MOST_ORIGINAL_BYTES + 1)
    except OSError as error:
        raise cannot("read original", Path(original), error) from error
    except ValueError as error:  # a NUL in the path
        raise RegistryError("the original is neither a SHA-256 nor a path") from error
    if len(data) > MOST_ORIGINAL_BYTES:
        raise RegistryError(f"original {original} is larger than {MOST_ORIGINAL_BYTES} bytes")
    return hashlib.sha256(data).hexdigest(), data


_HEX = frozenset("0123456789abcdef")


def _opened(registry: Registry | str | Path) -> Registry:
    if isinstance(registry, str | Path):
        from asmevo.registry.registry import Registry

        return Registry(registry)
    return registry


def _policy(policy: Policy | str) -> Policy:
    try:
        return Policy(policy)
    except ValueError:
        raise RegistryError(f"{policy!r} is not a policy; there are "
                            f"{', '.join(Policy)}") from None


def _target(device: str) -> Target:
    from asmevo.codeobject.errors import CodeObjectError
    from asmevo.codeobject.target import Target

    try:
        return Target.from_id(device)
    except CodeObjectError as error:
        raise RegistryError(f"the device is unknown: {error}") from None


def _of_one_kernel(offers: Sequence[Offer], sha256: str,
                   kernel: str | None) -> tuple[Offer, ...]:
    found = tuple(o for o in offers if kernel in (None, o.record.kernel))
    if not found:
        of = f"kernel '{kernel}' of " if kernel is not None else ""
        raise PullError(PullRefusal.NONE, f"there is no replacement for {of}original {sha256}")
    kernels = sorted({o.record.kernel for o in found})
    if len(kernels) > 1:
        raise PullError(PullRefusal.AMBIGUOUS_KERNEL,
                        f"original {sha256} has replacements for several kernels, name one: "
                        f"{', '.join(kernels)}")
    return found


def _rank(record: ReplacementRecord, policy: Policy) -> tuple[bool, float, int]:
    if policy is Policy.NEWEST:
        first = -record.created.timestamp()
    elif policy is Policy.CONFIRMED:
        first = -min(record.speedup, record.speedup_again or 0.0)
    else:
        first = -record.speedup
    return record.timing_source != "measured", first, record.id


def _refusal(refused: Sequence[PullError]) -> PullError:
    """What to tell of several refusals: the one that came furthest, for it is the easiest to mend,
    and how many others there are."""
    order = list(PullRefusal)
    furthest = max(refused, key=lambda error: order.index(error.code))
    others = sorted({e.code.value for e in refused if e.code is not furthest.code})
    more = "" if not others else f" (others: {', '.join(others)})"
    return PullError(furthest.code, f"{furthest}{more}")


@dataclass(frozen=True, slots=True)
class _Check:
    """What one pull demands of a replacement, in the order of `PullRefusal`."""

    registry: Registry
    original: str
    given: bytes | None
    device: Target | None
    policy: Policy
    trust: TrustList | None
    allow_modelled: bool
    allow_weaker: bool

    def content(self, offer: Offer) -> bytes:
        """The bytes of a replacement that everything speaks for. Raises `PullError`."""
        record = offer.record
        self._vouched(offer)
        if record.withdrawn:
            again = record.speedup_again
            raise PullError(PullRefusal.WITHDRAWN,
                            f"replacement {record.object_sha256} is withdrawn: timed again in a "
                            "fresh process, it was not confirmed"
                            + ("" if again is None else f" ({again:.4f}x)"))
        if self.policy is Policy.CONFIRMED and record.speedup_again is None:
            raise PullError(PullRefusal.NOT_CONFIRMED,
                            f"no second timing in a fresh process confirmed replacement "
                            f"{record.object_sha256}, as the policy '{self.policy}' demands")
        self._justified(offer)
        if record.weaknesses and not self.allow_weaker:
            raise PullError(PullRefusal.WEAKER_GATES,
                            f"replacement {record.object_sha256} was judged by less than the "
                            f"default gates: {'; '.join(record.weaknesses)}; --allow-weaker "
                            "(allow_weaker=True) accepts that")
        if record.timing_source != "measured" and not self.allow_modelled:
            raise PullError(PullRefusal.MODELLED_ONLY,
                            f"the speedup of replacement {record.object_sha256} is modelled, not "
                            "measured on hardware; --allow-modelled (allow_modelled=True) accepts "
                            "that")
        return self._drop_in(record)

    def counting(self, signers: Sequence[str]) -> tuple[str, ...]:
        """Of the keys that signed those that count."""
        return tuple(key for key in signers if self.trust is None or key in self.trust.keys)

    def _vouched(self, offer: Offer) -> None:
        sha256 = offer.record.object_sha256
        if offer.statement is None:
            raise PullError(PullRefusal.NO_STATEMENT,
                            f"nothing states what replacement {sha256} rests on; asmevo-registry "
                            "sign --state does so for what older versions committed")
        if (forged := offer.forged) is not None:
            raise PullError(PullRefusal.SIGNATURE_INVALID,
                            f"the signatures of replacement {sha256} are not in order: {forged}")
        if self.trust is None or self.counting(offer.signers):
            return
        if not offer.signers:
            raise PullError(PullRefusal.UNSIGNED,
                            f"replacement {sha256} is not signed, and trust list "
                            f"{self.trust.path} demands that it is")
        raise PullError(PullRefusal.UNTRUSTED,
                        f"replacement {sha256} is signed by {offer.signers[0]}, which is not in "
                        f"trust list {self.trust.path}")

    def _justified(self, offer: Offer) -> None:
        from asmevo.registry.replacement.evidence import missing_in

        assert offer.statement is not None
        missing = missing_in(offer.statement.document)
        if missing is not None:
            raise PullError(PullRefusal.EVIDENCE_INCOMPLETE,
                            f"the evidence for replacement {offer.record.object_sha256} is "
                            f"incomplete: {missing}")

    def _drop_in(self, record: ReplacementRecord) -> bytes:
        """The replacement's bytes, after looking at what launchers see of it."""
        from asmevo.registry.delivery.drop_in import Misfit, misfit

        data = self._bytes(record.object_sha256)
        original = self._bytes(self.original) if self.given is None else self.given
        found = misfit(original, data, record.kernel, self.device)
        if found is not None:
            code = (PullRefusal.ISA_MISMATCH if found.kind is Misfit.ISA
                    else PullRefusal.INTERFACE_MISMATCH)
            raise PullError(code, f"replacement {record.object_sha256} {found.reason}")
        return data

    def _bytes(self, sha256: str) -> bytes:
        try:
            return self.registry.load_object(sha256)
        except (BlobMissingError, BlobCorruptError) as error:
            raise PullError(PullRefusal.BLOB_CORRUPT, str(error)) from error
