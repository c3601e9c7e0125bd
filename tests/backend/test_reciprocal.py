"""The reciprocal table is read from this processor, checked, named, written, and replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import float_adm_oracle as oracle
import numpy as np
import pytest
from stills import noise

from backends import _reciprocal, reciprocal
from backends.base import Arithmetic, Refused
from backends.features.float_adm import FEATURE, _reference
from backends.features.float_adm.spec import FloatAdmOptions
from backends.reciprocal import RcpTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from backends.device import DeviceBackend

rcpss = pytest.mark.skipif(not _reciprocal.HAS_RCPSS, reason="this processor has no RCPSS")

DEBUG = FloatAdmOptions(debug=True)
RCPSS = ("rcpss-double", "rcpss-single")


@pytest.fixture(autouse=True)
def fresh_host() -> None:
    reciprocal.host_table.cache_clear()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file as `probe rcp --out` writes it."""
    path = tmp_path / "table.json"
    path.write_text(reciprocal.as_file(reciprocal.shipped()["amd-zen-4"], "some host"))
    return path


@rcpss
def test_every_checked_input_follows_the_table() -> None:
    check = reciprocal.check_host()
    # a whole binade, and 2048 mantissas (rounded up) at 512 signs and exponents
    assert check.checked == 2**23 + 512 * 2048
    assert check.different == 0


@rcpss
@pytest.mark.parametrize("entry", [0, 1, 2047, 2048, 4095])
def test_one_wrong_entry_is_seen(entry: int) -> None:
    table = reciprocal.host_table().bits.copy()
    table[entry] ^= 1
    assert _reciprocal.check_table(table)[1] >= 2048


@rcpss
def test_a_known_processor_is_named() -> None:
    known = {table.sha256: name for name, table in reciprocal.shipped().items()}
    table = reciprocal.host_table()
    assert table.name == known.get(table.sha256, "")
    assert table.sha256 in str(table)


def test_the_shipped_tables_are_the_measured_ones() -> None:
    assert {name: table.sha256 for name, table in reciprocal.shipped().items()} == {
        "amd-zen-4": "3f6f51774a48dd9912c71d0dbbd1a1d0a231ee873fba8ff036afc712f9d9133c",
        "intel-emerald-rapids": "3af61b27639405d793d15f1eeaa5d86e429e70e5a1e5350df98e360227fdb06b",
    }


def test_a_table_is_read_only() -> None:
    for table in reciprocal.shipped().values():
        with pytest.raises(ValueError, match="read-only"):
            table.bits[0] = 0


@rcpss
@pytest.mark.parametrize("dialect", RCPSS)
def test_this_processors_own_table_replayed_gives_the_instructions_bits(dialect: str) -> None:
    clip = noise(63, 65, 2)
    own = FEATURE.reference(Arithmetic(dialect), DEBUG, clip)
    replayed = FEATURE.reference(
        Arithmetic(dialect, rcp_table=reciprocal.host_table()), DEBUG, clip
    )
    assert own.values.tobytes() == replayed.values.tobytes()


@pytest.mark.parametrize("dialect", RCPSS)
def test_another_table_gives_other_bits(dialect: str) -> None:
    arithmetics = [Arithmetic(dialect, rcp_table=t) for t in reciprocal.shipped().values()]
    differing = 0
    for width in range(60, 80):  # most differences drown in a sum, so one picture may show none
        clip = noise(width, 65, 1)
        differing += len({FEATURE.reference(a, DEBUG, clip).values.tobytes() for a in arithmetics})
    assert differing > 20


@pytest.mark.parametrize("dialect", ["ieee-double", "ieee-single"])
def test_a_replayed_table_says_nothing_about_an_ieee_dialect(dialect: str) -> None:
    table = reciprocal.shipped()["amd-zen-4"]
    clip = noise(17, 17, 1)
    plain, replayed = (
        FEATURE.reference(Arithmetic(dialect, rcp_table=t), DEBUG, clip) for t in (None, table)
    )
    assert plain.values.tobytes() == replayed.values.tobytes()
    assert FEATURE.notes(Arithmetic(dialect, rcp_table=table)) == ()


def test_every_verdict_over_a_replayed_table_says_so() -> None:
    table = reciprocal.shipped()["amd-zen-4"]
    assert FEATURE.notes(Arithmetic("rcpss-single", rcp_table=table)) == (
        f"reciprocal table replayed: amd-zen-4 (sha256 {table.sha256})",
    )


@rcpss
def test_this_processors_own_estimate_needs_no_note() -> None:
    assert FEATURE.notes(Arithmetic("rcpss-single")) == ()


def no_instruction(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(_reciprocal, "HAS_RCPSS", False)
    return "this processor lacks the x86 instruction RCPSS"


def no_table(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(_reciprocal, "check_table", lambda _: (9437184, 3))
    return "not a 4096-entry table: 3 of 9437184 inputs differ"


@pytest.mark.parametrize("host", [no_instruction, pytest.param(no_table, marks=rcpss)])
def test_a_host_without_a_usable_estimate_falls_back_and_says_so(
    monkeypatch: pytest.MonkeyPatch, host: object
) -> None:
    assert callable(host)
    reason = host(monkeypatch)
    with pytest.raises(Refused, match=reason):
        reciprocal.host_table()
    (note,) = FEATURE.notes(Arithmetic("rcpss-double"))
    assert reason in note
    assert "use the IEEE quotient 1/x" in note
    clip = noise(63, 65, 2)
    fallback, ieee = (
        FEATURE.reference(Arithmetic(dialect), DEBUG, clip)
        for dialect in ("rcpss-double", "ieee-double")
    )
    assert fallback.values.tobytes() != ieee.values.tobytes()


def inputs() -> NDArray[np.float32]:
    """Every sign and exponent, zeros, denormals, infinities and NaNs too, at 64 mantissas."""
    high = np.arange(512, dtype=np.uint32)[:, np.newaxis] << np.uint32(23)
    mantissas = np.arange(0, 1 << 23, (1 << 17) + 1, dtype=np.uint32)
    return (high | np.append(mantissas, np.uint32((1 << 23) - 1))).ravel().view(np.float32)


def same(left: NDArray[np.float32], right: NDArray[np.float32]) -> bool:
    """Compare bits; any NaN equals any NaN, for devices make them their own."""
    equal = left.view(np.uint32) == right.view(np.uint32)
    return bool((equal | (np.isnan(left) & np.isnan(right))).all())


TABLES = pytest.mark.parametrize("name", reciprocal.shipped())


@TABLES
def test_the_reference_replays_a_table_for_every_kind_of_input(name: str) -> None:
    table = reciprocal.shipped()[name].bits
    values = inputs()
    _reference.replayed_estimates(table, values)
    assert same(values, oracle.estimate(table, inputs()))


ESTIMATES = """
KERNEL estimates(GLOBAL const uint *table, GLOBAL const float *values, GLOBAL float *results,
                 int count)
{
    if (ID(0) < count && ID(1) == 0 && ID(2) == 0)
        results[ID(0)] = reciprocal_estimate(table, values[ID(0)]);
}
"""


@TABLES
def test_kernels_follow_a_table_for_every_kind_of_input(
    device_backend: DeviceBackend, name: str
) -> None:
    device, table, values = device_backend.device, reciprocal.shipped()[name].bits, inputs()
    kernels = device.compile(FEATURE.kernel_source() + ESTIMATES)
    buffers = [device.upload(table), device.upload(values), device.empty(values.nbytes)]
    kernels.launch("estimates", (values.size, 1, 1), *buffers, np.int32(values.size))
    results = device.download(buffers[2], values.shape, np.dtype(np.float32))
    assert same(results, oracle.estimate(table, values))


@rcpss
def test_the_oracle_and_the_instruction_agree_on_every_kind_of_input() -> None:
    """Both are held against the oracle above, so it has to be right itself."""
    host = reciprocal.host_table().bits
    values = inputs()
    estimates = np.empty_like(values)
    _reciprocal.estimates(values, estimates)
    assert same(estimates, oracle.estimate(host, values))


def test_a_written_table_is_loaded_again(written: Path) -> None:
    table = reciprocal.load(str(written))
    assert table.sha256 == reciprocal.shipped()["amd-zen-4"].sha256


def test_a_known_table_is_loaded_by_name() -> None:
    assert reciprocal.load("amd-zen-4") is reciprocal.shipped()["amd-zen-4"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="table 'amd': there is no such file or name; known: amd-zen-4, int"
    ):
        reciprocal.load("amd")


def spoiled(written: Path, **changes: object) -> str:
    document = json.loads(written.read_text())
    document["tables"][0] |= changes
    written.write_text(json.dumps(document))
    return str(written)


@pytest.mark.parametrize(
    ("entry", "value", "sentence"),
    [
        (7, 2**32, "bits.7: Input should be less than or equal to 4294967295"),
        (7, 2**70, "bits.7: Input should be less than or equal to 4294967295"),
        (7, -1, "bits.7: Input should be greater than or equal to 0"),
        (7, 0x7FC00000, "entry 7 is no estimate of 1/1.00171"),
        (4095, 0x3F7FF000, "entry 4095 is no estimate of 1/1.99976"),
        (4095, "x", "valid integer"),
    ],
)
def test_an_entry_that_is_no_estimate_is_refused(
    written: Path, entry: int, value: object, sentence: str
) -> None:
    bits: list[object] = list(reciprocal.shipped()["amd-zen-4"].bits.tolist())
    bits[entry] = value
    with pytest.raises(ValueError, match=sentence):
        reciprocal.load(spoiled(written, bits=bits))


@pytest.mark.parametrize("count", [0, 4095, 4097])
def test_a_table_of_another_length_is_refused(written: Path, count: int) -> None:
    with pytest.raises(ValueError, match="4096 items"):
        reciprocal.load(spoiled(written, bits=[0x3F7FF000] * count))


def test_a_table_under_a_wrong_hash_is_refused(written: Path) -> None:
    with pytest.raises(ValueError, match="the bits have 3f6f5177"):
        reciprocal.load(spoiled(written, sha256="0" * 64))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tables": []}', "\x00", "{" * 100])
def test_what_is_no_table_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"table '.*t.json': .*`parity-gate probe rcp --out`"):
        reciprocal.load(str(path))


def test_an_unknown_key_is_refused(written: Path) -> None:
    with pytest.raises(ValueError, match=r"tables\.0\.nmae: Extra inputs are not permitted"):
        reciprocal.load(spoiled(written, nmae="host"))


def test_other_bits_under_a_shipped_name_are_refused(written: Path) -> None:
    with pytest.raises(ValueError, match="its bits are not those of intel-emerald-rapids"):
        reciprocal.load(spoiled(written, name="intel-emerald-rapids"))


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("", "there is no such file or name"),
        (".", "it is no regular file"),
        ("/dev/zero", "it is no regular file"),
        ("a" * 5000, "File name too long"),
    ],
)
def test_what_is_no_file_is_refused_in_one_sentence(wanted: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"table '.*': {sentence}"):
        reciprocal.load(wanted)


def test_two_tables_in_a_file_are_refused(written: Path) -> None:
    document = json.loads(written.read_text())
    document["tables"] *= 2
    written.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="it holds 2 tables; one is allowed"):
        reciprocal.load(str(written))


@pytest.mark.parametrize(("size", "taken"), [(-1, True), (0, True), (1, False)])
def test_a_file_is_read_up_to_its_largest_size(written: Path, size: int, taken: bool) -> None:  # noqa: FBT001 - a column
    text = written.read_text()
    written.write_text(text + " " * (reciprocal.LARGEST + size - len(text)))
    if taken:
        reciprocal.load(str(written))
    else:
        with pytest.raises(ValueError, match="larger than 1048576 bytes"):
            reciprocal.load(str(written))


def test_a_table_without_a_name_shows_its_hash() -> None:
    bits = np.zeros(4096, np.uint32)
    assert str(RcpTable("", bits)).startswith("without a name (sha256 4fe7b59af6de3b66")
