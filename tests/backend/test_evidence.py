"""What every device, and real libvmaf, tells of its computations holds before the gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import real_libvmaf
from stills import Clip, noise

from backends import registry
from backends.base import Arithmetic, Feature, NoResult, Scores
from backends.evidence import WITNESS, Evidence, Nonce
from backends.witness import ROWS, WORDS, Watched
from gate.asking import Ask, answer
from gate.proof import Pictures, flaw, mixed_sum, witness

if TYPE_CHECKING:
    from backends.base import Backend, Luma, Runtime
    from backends.device import DeviceBackend

NONCE = Nonce(0xFEDCBA9876543210, 0x123456789ABCDEF)
ROW = 8 * WORDS  # bytes that one row of work items takes
FEATURES = registry.features()


@pytest.fixture
def runtime(device_backend: DeviceBackend) -> Runtime:
    return device_backend.device


def witnessed(runtime: Runtime, *arrays: Luma) -> tuple[int, ...]:
    watched = Watched(runtime)
    watched.begin(NONCE)
    for array in arrays:
        watched.upload(array)
    return watched.evidence().witnesses


def expected(array: Luma) -> int:
    return witness(mixed_sum(array, NONCE.run), NONCE)


def random_bytes(length: int) -> Luma:
    return np.random.default_rng(length).integers(0, 256, length, np.uint8)


@pytest.mark.parametrize(
    "lengths",
    [
        (1, 2, 3, 7, 8, 9, 15, 16, 17),
        (8 * 64 - 1, 8 * 64, 8 * 64 + 1),  # a block of one work item
        (ROW - 1, ROW, ROW + 1, 2 * ROW - 8, 2 * ROW, 2 * ROW + 8),
        (ROWS * ROW - 1, ROWS * ROW, ROWS * ROW + 1),  # from here on an item has several blocks
    ],
    ids=["words", "blocks", "rows", "all rows"],
)
def test_a_device_and_the_gate_witness_the_same(runtime: Runtime, lengths: tuple[int, ...]) -> None:
    arrays = [random_bytes(length) for length in lengths]
    assert witnessed(runtime, *arrays) == tuple(map(expected, arrays))


def test_deep_samples_are_witnessed_as_they_lie_in_memory(runtime: Runtime) -> None:
    samples = np.arange(3 * 5 * 7, dtype=np.uint16).reshape(3, 5, 7) * np.uint16(613)
    turned = np.asfortranarray(samples)
    assert witnessed(runtime, samples, turned) == (expected(samples),) * 2


def test_every_bit_of_every_byte_counts(runtime: Runtime) -> None:
    whole = random_bytes(19)
    changed = []
    for bit in range(8 * whole.size):
        flipped = whole.copy()
        flipped[bit // 8] ^= 1 << bit % 8
        changed.append(flipped)
    assert len({*witnessed(runtime, whole, *changed)}) == 1 + len(changed)


def test_the_place_of_a_word_counts(runtime: Runtime) -> None:
    words = random_bytes(8 * 2 * 64).reshape(-1, 8)
    assert len({*witnessed(runtime, words, words[::-1], np.roll(words, 64, axis=0))}) == 3


@pytest.mark.parametrize("group", [(1, 1, 1), (8, 1, 1), (16, 16, 1), (256, 1, 1)])
def test_the_size_of_a_work_group_changes_no_witness(
    runtime: Runtime, group: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_work_group", group)
    arrays = [random_bytes(length) for length in (5, 3 * ROW + 5)]
    assert witnessed(runtime, *arrays) == tuple(map(expected, arrays))


def asked(
    backend: Backend, feature: Feature, clip: Clip, dialect: str = ""
) -> tuple[Scores, Callable[[Evidence | None], str]]:
    """Return scores, and what finds a flaw in evidence of their computation."""
    pictures = Pictures()
    nonce = pictures.nonce()
    arithmetic = Arithmetic(dialect or feature.dialects[-1])
    scores = answer(backend, Ask(feature, arithmetic, feature.options(), clip, 0, nonce=nonce))

    def found(evidence: Evidence | None) -> str:
        return flaw(
            backend.name,
            evidence,
            owed=registry.owed(backend.name),
            opened=backend.facts(),
            frames=clip.frames,
            nonce=nonce,
            sums=pictures.of(clip),
        )

    return scores, found


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize(("size", "bit_depth"), [((33, 35, 5), 8), ((67, 51, 3), 12)])
@pytest.mark.parametrize("batch", [1, 2, 0])
def test_the_evidence_of_a_device_has_no_flaw(
    device_backend: DeviceBackend,
    name: str,
    size: tuple[int, int, int],
    bit_depth: int,
    batch: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clip, device = noise(*size, bit_depth), device_backend.device
    frames = size[2]
    if batch:
        monkeypatch.setattr(f"backends.features.{name}.twin.BATCH", batch)
    scores, found = asked(device_backend, FEATURES[name], clip)
    told = scores.evidence
    assert told is not None
    assert found(told) == ""
    assert len(told.witnesses) == len(told.reads) == -(-frames // (batch or frames))
    assert told.facts == device.facts()
    assert told.facts.items() <= device_backend.facts().items()
    kernels = [launch.kernel for launch in told.launches]
    assert kernels.count(WITNESS) == len(told.witnesses)
    assert kernels.count("dwt_vertical") == 4 * len(told.witnesses)
    assert all(launch.start < launch.end for launch in told.launches)
    assert found(replace(told, witnesses=tuple(each ^ 1 for each in told.witnesses))) != ""
    assert found(replace(told, reads=told.reads[1:])) != ""


def test_a_device_that_had_other_pictures_is_found_out(device_backend: DeviceBackend) -> None:
    """As with a copy that took the reference for both sides."""
    clip = noise(33, 35, 2)
    _, found = asked(device_backend, FEATURES["float_adm"], clip)
    other = Clip(clip.ref, clip.ref, clip.bit_depth)
    scores, _ = asked(device_backend, FEATURES["float_adm"], other)
    assert "so its scores are of other pictures or of another computation" in found(scores.evidence)


def test_scores_that_are_refused_have_evidence(device_backend: DeviceBackend) -> None:
    """Their bits are compared, too."""
    clip, feature = noise(45, 37, 2), FEATURES["integer_adm"]
    clip.ref[1] = 128
    options = feature.options.model_validate({"adm_noise_weight": 0.0})
    asked = Ask(feature, Arithmetic("vmafx", "vmafx"), options, clip, 0, nonce=NONCE)
    with pytest.raises(NoResult) as refusal:
        answer(device_backend, asked)
    told = refusal.value.scores.evidence
    assert told is not None
    assert told.reads == ((0, 2),)
    assert told.witnesses == (expected(np.concatenate((clip.ref, clip.dist))),)


def test_the_evidence_of_a_program_has_no_flaw(monkeypatch: pytest.MonkeyPatch) -> None:
    libvmaf = real_libvmaf.opened()
    monkeypatch.setattr("backends.libvmaf.BATCH", 1)  # a frame each
    feature, clip = FEATURES["float_adm"], noise(33, 34, 2)
    scores, found = asked(libvmaf, feature, clip, "rcpss-single")
    told = scores.evidence
    assert told is not None
    assert found(told) == ""
    assert told.endings == ((0, 1), (0, 1))
    assert told.facts.items() <= libvmaf.facts().items()
    assert found(replace(told, endings=((0, 1),))) != ""  # type: ignore[arg-type]  # equal tuples


@pytest.mark.parametrize("name", FEATURES)
def test_the_evidence_of_the_reference_is_what_it_read(name: str) -> None:
    clip = noise(33, 35, 5)
    scores, found = asked(registry.open_backend("cpu"), FEATURES[name], clip)
    assert found(scores.evidence) == ""
    assert scores.evidence is not None
    assert scores.evidence == Evidence(reads=scores.evidence.reads)


def test_a_buffer_of_sums_takes_the_items_of_all_rows(runtime: Runtime) -> None:
    """The first upload is small, and a larger one uses its buffer again."""
    watched = Watched(runtime)
    for length in (1, ROWS * ROW):
        watched.begin(NONCE)
        array = random_bytes(length)
        watched.upload(array)
        assert watched.evidence().witnesses == (expected(array),)
