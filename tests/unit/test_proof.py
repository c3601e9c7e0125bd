"""What the gate holds of a backend's evidence against what was asked for."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from stills import Clip, noise

from backends import opencl, registry
from backends.base import Luma
from backends.evidence import WITNESS, Ending, Evidence, Launch, Nonce, Owed, Proof
from gate.proof import CHUNK, WORD, Pictures, flaw, mixed_sum, witness

NONCE = Nonce(11, 13)
DEVICE = Owed(launches=True, facts={"platform": "P ", "device": ""})
PROGRAM = Owed(endings=True, facts={"version": ""})
OPENED = {"platform": "P 1", "device": "D", "version": "3.0.0", "driver": "7"}
RAN = Evidence(
    reads=((0, 2), (2, 1)),
    facts={"platform": "P 1", "device": "D"},
    launches=(
        Launch("powers", 1, 2),
        Launch(WITNESS, 2, 4),
        Launch("pixels_8", 4, 8),
        Launch("fold", 8, 16),
        Launch(WITNESS, 16, 32),
        Launch("fold", 32, 64),
    ),
    witnesses=(5 * 13, 6 * 13),
)
ENDED = Evidence(
    reads=((0, 2), (2, 1)), facts={"version": "3.0.0"}, endings=(Ending(0, 2), Ending(0, 1))
)


def sums(first: int, count: int) -> int:
    return {(0, 2): 5, (2, 1): 6, (0, 1): 5, (1, 2): 6}[first, count]


def found(evidence: Evidence | None, owed: Owed = DEVICE, frames: int = 3) -> str:
    return flaw("x", evidence, owed=owed, opened=OPENED, frames=frames, nonce=NONCE, sums=sums)


def test_evidence_of_all_that_is_owed_has_no_flaw() -> None:
    assert found(RAN) == ""
    assert found(ENDED, PROGRAM) == ""
    assert found(Evidence(reads=((0, 3),)), Owed()) == ""
    assert found(replace(RAN, reads=RAN.reads[::-1], witnesses=RAN.witnesses[::-1])) == ""


def launched(*launches: Launch) -> Evidence:
    return replace(RAN, launches=launches)


ABSENT = "no evidence that x ran: nothing was launched on a device"
ONCE = "; required: each of them once"
TIMES = "; a kernel that ran ends later than it began"
OTHERS = (
    "x witnessed frames 2 to 2 as 0000000000000007; those that it was given are 000000000000004e "
    "in this computation, so its scores are of other pictures or of another computation"
)


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        (None, "no evidence that x ran: its scores came alone"),
        (Evidence(), ABSENT),
        (replace(RAN, launches=()), ABSENT),
        (replace(RAN, facts={}), "x was opened with platform 'P 1', and ran on ''"),
        (
            replace(RAN, facts={**RAN.facts, "device": "E"}),
            "x was opened with device 'D', and ran on 'E'",
        ),
        (replace(RAN, reads=()), f"x read of 3 frames none{ONCE}"),
        (replace(RAN, reads=((0, 2),)), f"x read of 3 frames 2 from frame 0{ONCE}"),
        (replace(RAN, reads=((1, 2),)), f"x read of 3 frames 2 from frame 1{ONCE}"),
        (replace(RAN, reads=((0, 2), (1, 2))), "x read of 3 frames 2 from frame 0, 2 from f"),
        (replace(RAN, reads=((0, 3), (3, 0))), "x read of 3 frames 3 from frame 0, 0 from f"),
        (replace(RAN, reads=((0, 4),)), f"x read of 3 frames 4 from frame 0{ONCE}"),
        (
            launched(*RAN.launches[:-1], Launch("fold", 32, 32)),
            f"launch 5 of x, kernel fold, began at 32 ns and ended at 32 ns{TIMES}",
        ),
        (
            launched(Launch("powers", 2, 1), *RAN.launches[1:]),
            f"launch 0 of x, kernel powers, began at 2 ns and ended at 1 ns{TIMES}",
        ),
        (
            replace(RAN, witnesses=RAN.witnesses[:1]),
            "x witnessed 1 upload of pictures; required: 2, one a batch of frames",
        ),
        (
            replace(RAN, witnesses=(*RAN.witnesses, 0)),
            "x witnessed 3 uploads of pictures; required: 2, one a batch of frames",
        ),
        (launched(*RAN.launches[:-1]), "x launched kernels on 1 upload of pictures; required: 2,"),
        (
            launched(*RAN.launches[:2], *RAN.launches[4:]),
            "x launched kernels on 1 upload of pictures; required: 2, one a batch of frames",
        ),
        (
            launched(RAN.launches[0], *RAN.launches[2:4]),
            "x launched kernels on 0 uploads of pictures; required: 2, one a batch of frames",
        ),
        (replace(RAN, witnesses=(RAN.witnesses[0], 7)), OTHERS),
    ],
)
def test_a_flaw_says_what_was_told_and_what_is_true(
    evidence: Evidence | None, sentence: str
) -> None:
    assert found(evidence).startswith(sentence)


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        (Evidence(reads=((0, 3),)), "no evidence that x ran: no program was started"),
        (replace(ENDED, facts={"version": "2.0.0"}), "x was opened with version '3.0.0', and ran"),
        (
            replace(ENDED, endings=(Ending(0, 2), Ending(1, 1))),
            "a program of x ended with exit code 1; required: 0",
        ),
        (
            replace(ENDED, endings=(Ending(0, 2), Ending(0, 0))),
            "programs of x logged [2, 0] frames; required: [2, 1], as were read",
        ),
        (replace(ENDED, endings=ENDED.endings[:1]), "programs of x logged [2] frames; required: ["),
    ],
)
def test_a_program_must_have_ended_well_with_every_frame(evidence: Evidence, sentence: str) -> None:
    assert found(evidence, PROGRAM).startswith(sentence)


def test_a_platform_that_was_told_from_the_start_must_still_be_the_named_one() -> None:
    owed = Owed(launches=True, facts={"platform": "Q ", "device": ""})
    assert found(RAN, owed) == "x ran on platform 'P 1'; required: one that begins with 'Q '"


def test_a_fact_that_nobody_told_is_a_flaw() -> None:
    owed = Owed(launches=True, facts={"device UUID": ""})
    assert found(RAN, owed) == "x was opened with device UUID '', and ran on ''"


def test_a_witness_of_another_computation_or_run_is_a_flaw() -> None:
    clip, pictures = noise(17, 17, 1), Pictures()
    first, second = pictures.nonce(), pictures.nonce()
    total = pictures.of(clip)(0, 1)
    launches = (Launch(WITNESS, 1, 2), Launch("fold", 2, 3))
    told = Evidence(((0, 1),), RAN.facts, launches, (witness(total, first),))
    asked = {"owed": DEVICE, "opened": OPENED, "frames": 1, "sums": pictures.of(clip)}
    assert flaw("x", told, nonce=first, **asked) == ""  # type: ignore[arg-type]  # by their names
    assert flaw("x", told, nonce=second, **asked) != ""  # type: ignore[arg-type]  # by their names
    asked["sums"] = Pictures().of(clip)  # of another run
    assert flaw("x", told, nonce=first, **asked) != ""  # type: ignore[arg-type]  # by their names


def test_nonces_share_the_run_and_are_odd() -> None:
    pictures = Pictures()
    nonces = [pictures.nonce() for _ in range(100)]
    assert len({nonce.run for nonce in nonces}) == 1
    assert len({nonce.computation for nonce in nonces}) == 100
    assert all(nonce.computation % 2 for nonce in nonces)  # which loses no bit of a sum
    assert Pictures().nonce().run != nonces[0].run


def plain_sum(data: bytes, run: int) -> int:
    """Return the sum of a finaliser that is spelled out, word by word."""
    total, mask = 0, (1 << 64) - 1
    for at in range(0, len(data), 8):
        x = int.from_bytes(data[at : at + 8], "little")
        x ^= (run + (at // 8 + 1) * 0x9E3779B97F4A7C15) & mask
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
        x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
        total += x ^ x >> 31
    return total & mask


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 16, 17, 511, 512, 513])
@pytest.mark.parametrize("run", [0, 1, 1 << 63, (1 << 64) - 1])
def test_a_sum_is_that_of_its_words_with_zeros_behind(length: int, run: int) -> None:
    data = random.Random(length).randbytes(length)  # noqa: S311 - no secret
    assert mixed_sum(np.frombuffer(data, np.uint8), run) == plain_sum(data, run)


@pytest.mark.parametrize("words", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 1])
@pytest.mark.parametrize("more", [0, 1])
def test_a_chunk_boundary_changes_no_sum(words: int, more: int) -> None:
    data = random.Random(words).randbytes(WORD * words + more)  # noqa: S311 - no secret
    assert mixed_sum(np.frombuffer(data, np.uint8), 5) == plain_sum(data, 5)


def test_splitmix64_gives_its_published_first_number() -> None:
    """Of seed 1234567, as the generator's authors print it; one word of zeros is one draw."""
    assert mixed_sum(np.zeros(8, np.uint8), 1234567) == 6457827717110365317


def test_deep_samples_are_little_endian_bytes() -> None:
    samples = np.arange(4, dtype=np.uint16).reshape(1, 2, 2) + np.uint16(0x1234)
    assert mixed_sum(samples, 3) == mixed_sum(
        np.frombuffer(samples.astype("<u2").tobytes(), np.uint8), 3
    )


class Counting(Clip):
    """A clip that counts how often it is read."""

    asked = 0

    def read(self, first: int, count: int) -> tuple[Luma, Luma]:
        self.asked += 1
        return super().read(first, count)


def test_pictures_are_read_once_a_batch_while_their_clip_stays() -> None:
    still, pictures = noise(17, 17, 3), Pictures()
    clip = Counting(still.ref, still.dist, still.bit_depth)
    run = pictures.nonce().run
    for batch in ((0, 2), (2, 1), (0, 2), (2, 1)):
        both = np.concatenate(still.read(*batch))
        assert pictures.of(clip)(*batch) == mixed_sum(both, run)
    assert clip.asked == 2
    assert pictures.of(still)(0, 2) == pictures.of(clip)(0, 2)
    assert clip.asked == 3


def test_evidence_is_the_same_behind_a_connection() -> None:
    for evidence in (RAN, ENDED, Evidence()):
        assert Evidence.from_json(json.loads(json.dumps(evidence.as_json()))) == evidence


def test_a_report_keeps_what_ran_on_pictures() -> None:
    """What a twin launches before it has any, it launches in the first of many computations."""
    assert RAN.proof() == Proof("P 1, D", frames=3, launches=3, nanoseconds=4 + 8 + 32)
    assert ENDED.proof() == Proof("3.0.0", frames=3, launches=0, nanoseconds=0)
    assert Evidence().proof() == Proof("", frames=0, launches=0, nanoseconds=0)


OWED: Mapping[str, Owed] = {
    "cpu": Owed(),
    "cuda": Owed(launches=True, facts={"device UUID": "", "PCI bus": ""}),
    "libvmaf": Owed(endings=True, facts={"libvmaf": "", "ffmpeg binary": "sha256 "}),
}


@pytest.mark.parametrize("name", registry.backend_names())
def test_every_device_owes_launches_on_what_its_name_says(name: str) -> None:
    owed = registry.owed(name)
    if name.startswith("opencl:"):
        # The space, so that no platform only begins as another one.
        facts = {"platform": f"{opencl.PLATFORMS[name]} ", "device": ""}
        assert owed == Owed(launches=True, facts=facts)
    else:
        assert owed == OWED[name]


def test_who_is_unknown_owes_that_it_reads() -> None:
    assert registry.owed("opencl:unheard") == Owed()
