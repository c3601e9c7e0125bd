"""Which powf the host runs decides what devices do; another powf than glibc's is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from backends import c_library
from backends.base import Refused
from backends.features.float_adm import powers
from backends.features.float_adm.powers import Powers
from backends.features.float_adm.telling import TELLING

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from backends.base import Device
    from backends.device import DeviceBackend


glibc_powf = c_library.powf


def nearest_powf(
    values: NDArray[np.float32], exponents: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return powers rounded from doubles, as some C libraries have them."""
    with np.errstate(all="ignore"):
        wide: NDArray[np.float64] = np.float_power(values, exponents)
    return wide.astype(np.float32)


def one_step_off_above_a_million(
    values: NDArray[np.float32], exponents: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return glibc's powers, but for finite values above a million: another routine's, one off."""
    right = glibc_powf(values, exponents)
    wrong = (values > 1e6) & np.isfinite(right) & (exponents == np.float32(1.25))
    return np.where(wrong, np.nextafter(right, np.float32(0)), right)


def test_a_host_whose_powf_is_not_glibcs_is_refused(
    device_powers: Powers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c_library, "powf", nearest_powf)
    sentence = r"^the C library's powf here is not glibc's, .*powf\(0x1\.8bea4a.*p\+3, 20\) is 0x1"
    with pytest.raises(Refused, match=sentence):
        device_powers.check(2.5)
    assert re.match(sentence, powers.described())


def test_a_host_that_is_glibcs_on_the_telling_inputs_only_is_refused(
    device_powers: Powers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(c_library, "powf", one_step_off_above_a_million)
    device_powers.check(2.5)
    with pytest.raises(Refused, match=r"for \d+ of \d+ inputs: powf\(0x1\S+p\+\d+, 1\.25\) is "):
        device_powers.check(1.25)


def test_the_description_tells_build_and_number_of_inputs() -> None:
    build = "fused" if powers.host_fuses() else "separate"
    compared = len(TELLING) + len(powers.sample(2.5))
    assert powers.described().startswith(f"glibc's build with {build} operations, as 3 inputs tell")
    assert f" on {compared} inputs per exponent" in powers.described()
    assert len({len(powers.sample(exponent)) for exponent in (1.0, 1 / 3, 20.0)}) == 1


# Holds device against host, and twin against reference, as a process of its own finds them.
SEPARATE = """
import sys
from backends import registry
from backends.base import Arithmetic
from backends.features.float_adm import FEATURE, powers, spec
from stills import noise
if powers.host_fuses():
    sys.exit("fused")
backend = registry.open_backend(sys.argv[1])
clip, options = noise(64, 48, 2), spec.FloatAdmOptions(debug=True, adm_p_norm=20.0)
for dialect in ("ieee-double", "ieee-single"):
    arithmetic = Arithmetic(dialect)
    twin = backend.compute(FEATURE, arithmetic, options, clip)
    assert twin.values.tobytes() == FEATURE.reference(arithmetic, options, clip).values.tobytes()
print(powers.described())
"""


def test_a_host_without_fma_gets_separate_operations_and_the_references_bits(
    device_backend: DeviceBackend, tmp_path: Path
) -> None:
    """glibc is told that this processor lacks FMA and AVX2, so that it loads its other build."""
    tunables = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4"}
    process = subprocess.run(
        [sys.executable, "-c", SEPARATE, device_backend.name],
        env={**os.environ, **tunables, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.stderr.strip() == "fused":
        pytest.skip("this C library keeps its build with FMA whatever GLIBC_TUNABLES says")
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("glibc's build with separate operations, ")


def test_an_exhaustive_comparison_counts_every_input(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(powers, "PATTERNS", 1 << 16)
    monkeypatch.setattr(powers, "CHUNK", 1 << 14)
    done: list[int] = []
    assert powers.exhaustive(device, 1.0, done.append) == (1 << 16, 0, ())
    assert done == [1 << 14, 2 << 14, 3 << 14, 4 << 14]


def test_an_exhaustive_comparison_tells_the_first_differences_and_counts_all(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_bit_set(
        values: NDArray[np.float32], exponents: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        right = glibc_powf(values, exponents)
        wrong = (values.view(np.uint32) >= 20000) & (values.view(np.uint32) < 40000)
        return (right.view(np.uint32) + wrong).view(np.float32)

    monkeypatch.setattr(powers, "PATTERNS", 1 << 16)
    monkeypatch.setattr(powers, "CHUNK", 1 << 14)
    monkeypatch.setattr(c_library, "powf", last_bit_set)
    compared, different, first = powers.exhaustive(device, 1.0, lambda _: None)
    assert (compared, different) == (1 << 16, 20000)
    smallest = 2.0**-149
    assert [difference.value for difference in first] == [
        bits * smallest for bits in range(20000, 20000 + powers.FIRST)
    ]
    assert str(first[0]) == (
        f"powf({(20000 * smallest).hex()}, 1) is {(20001 * smallest).hex()} in the C library "
        f"and {(20000 * smallest).hex()} on the device"
    )
