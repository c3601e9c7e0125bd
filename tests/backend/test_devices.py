"""What every device and its twin must do, whatever runtime is behind them."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from stills import noise

from backends import exactness, opencl, reference, registry
from backends.base import Arithmetic, CompilationFailed, Inexact, Refused, Scores, Unavailable
from backends.features import integer_adm
from backends.features.float_adm import FEATURE
from backends.features.float_adm.spec import FloatAdmOptions
from backends.features.float_adm.twin import bytes_per_frame

if TYPE_CHECKING:
    from backends.base import Backend
    from backends.device import DeviceBackend

DEBUG = FloatAdmOptions(debug=True)
PROPERTIES = [
    "float a*b+c is two operations",
    "float division is correctly rounded",
    "denormals are kept",
    "NaN compares as unordered",
    "double rounds to nearest float",
    "float bits pass as integers",
    "double a*b+c is two operations",
    "double fma is one operation",
]


def same(left: Scores, right: Scores) -> bool:
    return left.names == right.names and left.values.tobytes() == right.values.tobytes()


def test_a_device_passes_the_exactness_probe(device_backend: DeviceBackend) -> None:
    wrong = exactness.probe(device_backend.device)
    assert list(wrong) == PROPERTIES
    assert set(wrong.values()) == {0}


def test_facts_name_device_driver_compiler_and_flags(device_backend: Backend) -> None:
    facts = device_backend.facts()
    for what in ("device", "driver", "compiler", "exactness flags"):
        assert facts[what]


@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5])
def test_a_batch_boundary_changes_no_bit(
    device_backend: DeviceBackend, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames one by one, in twos and all at once, around the boundary at two frames."""
    clip = noise(37, 29, frames)
    per_frame = bytes_per_frame(clip)
    whole = device_backend.compute(FEATURE, Arithmetic("ieee-single"), DEBUG, clip)
    for batch in (1, 2):
        monkeypatch.setattr(device_backend.device, "memory_budget", batch * per_frame)
        assert same(whole, device_backend.compute(FEATURE, Arithmetic("ieee-single"), DEBUG, clip))
    assert same(whole, FEATURE.reference(Arithmetic("ieee-single"), DEBUG, clip))


@pytest.mark.parametrize("group", [(1, 1, 1), (8, 1, 1), (32, 4, 1), (16, 16, 1), (256, 1, 1)])
def test_the_size_of_a_work_group_changes_no_bit(
    device_backend: DeviceBackend, group: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    clip, device = noise(67, 51, 2, 10), device_backend.device
    whole = device_backend.compute(FEATURE, Arithmetic("rcpss-double"), DEBUG, clip)
    monkeypatch.setattr(device, "_work_group", group)
    twin = FEATURE.twin(device, FEATURE.kernel_source())
    assert same(whole, twin.compute(Arithmetic("rcpss-double"), DEBUG, clip))


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 8, 64])
def test_the_number_of_threads_changes_no_bit(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = noise(67, 51, 7, 12)
    whole = FEATURE.reference(Arithmetic("rcpss-double"), DEBUG, clip)
    monkeypatch.setattr(reference, "threads", lambda *_: threads)
    assert same(whole, FEATURE.reference(Arithmetic("rcpss-double"), DEBUG, clip))


@pytest.mark.parametrize("width", [63, 64, 65, 127, 128, 129])
@pytest.mark.parametrize("height", [17, 31, 32, 33])
def test_sizes_around_a_work_group_agree_with_the_reference(
    device_backend: Backend, width: int, height: int
) -> None:
    clip = noise(width, height, 1, 10)
    for dialect in ("rcpss-double", "ieee-single"):
        twin = device_backend.compute(FEATURE, Arithmetic(dialect), DEBUG, clip)
        assert same(twin, FEATURE.reference(Arithmetic(dialect), DEBUG, clip))


@pytest.mark.parametrize(
    ("dialect", "size", "bit_depth", "sentence"),
    [
        ("nonsense", 17, 8, r"^dialect 'nonsense' is unknown; allowed: rcpss-double, "),
        ("ieee-single", 16, 8, r"^frame 16x16 is below 17x17: float_adm has no defined result"),
        ("ieee-single", 17, 9, r"^bit_depth 9 is not supported; allowed: 8, 10, 12, 16$"),
    ],
)
def test_what_has_no_defined_result_is_refused_on_both_sides(
    device_backend: Backend, dialect: str, size: int, bit_depth: int, sentence: str
) -> None:
    clip = noise(size, size, 1, bit_depth)
    with pytest.raises(Refused, match=sentence):
        device_backend.compute(FEATURE, Arithmetic(dialect), DEBUG, clip)
    with pytest.raises(Refused, match=sentence):
        FEATURE.reference(Arithmetic(dialect), DEBUG, clip)


def test_a_clip_in_another_memory_order_gives_the_same_bits(device_backend: Backend) -> None:
    clip = noise(37, 29, 2)
    turned = replace(clip, ref=np.asfortranarray(clip.ref), dist=np.asfortranarray(clip.dist))
    whole = device_backend.compute(FEATURE, Arithmetic("ieee-single"), DEBUG, clip)
    assert same(whole, device_backend.compute(FEATURE, Arithmetic("ieee-single"), DEBUG, turned))


@pytest.mark.parametrize("p_norm", [1.0, 2.0, 2.5, 2.99999, 3.0, 3.00001, 4.5, 13.7, 20.0])
def test_every_p_norm_gives_the_references_bits(device_backend: Backend, p_norm: float) -> None:
    options = FloatAdmOptions(debug=True, adm_p_norm=p_norm)
    for clip in (noise(37, 29, 2), noise(64, 48, 1, 16)):
        for dialect in ("ieee-double", "ieee-single"):
            twin = device_backend.compute(FEATURE, Arithmetic(dialect), options, clip)
            assert same(twin, FEATURE.reference(Arithmetic(dialect), options, clip))


def test_a_kernel_that_does_not_compile_shows_the_compilers_log(
    device_backend: DeviceBackend,
) -> None:
    with pytest.raises(CompilationFailed, match="do not compile") as failure:
        FEATURE.twin(device_backend.device, "KERNEL broken(int x) { return undeclared; }")
    assert "undeclared" in failure.value.log


def test_poison_covers_what_is_asked_and_no_more(device_backend: DeviceBackend) -> None:
    device = device_backend.device
    buffer = device.upload(np.ones(5, np.float32))
    device.poison(buffer, 4 * 3)
    left = device.download(buffer, (5,), np.dtype(np.float32))
    assert np.isnan(left).tolist() == [True, True, True, False, False]


def test_memory_is_poisoned_until_a_kernel_writes_it(device_backend: DeviceBackend) -> None:
    device = device_backend.device
    buffer = device.empty(4 * 5)
    assert np.isnan(device.download(buffer, (5,), np.dtype(np.float32))).all()


@pytest.mark.parametrize("property_", PROPERTIES)
def test_a_failing_probe_names_the_property(
    property_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spoil one of the results, as a wrong flag would."""
    order = iter(range(len(PROPERTIES)))
    plain = exactness._wrong  # noqa: SLF001 - the fault goes between device and probe

    def spoiled(got: Any, wanted: Any) -> int:  # noqa: ANN401 - arrays of two types
        return plain(got * 2 if next(order) == PROPERTIES.index(property_) else got, wanted)

    monkeypatch.setattr(exactness, "_wrong", spoiled)
    with pytest.raises(Inexact, match=re.escape(property_)):
        registry.open_backend("opencl:pocl")


class FakePlatform:
    """As many devices of one platform as a test wants."""

    name = opencl.PLATFORMS["opencl:intel"]
    version = "OpenCL 9"

    def __init__(self, names: list[str]) -> None:
        self.devices = [SimpleNamespace(name=name, platform=self) for name in names]

    def get_devices(self) -> list[SimpleNamespace]:
        return self.devices


@pytest.fixture
def platforms(monkeypatch: pytest.MonkeyPatch) -> list[FakePlatform]:
    """Put a driver of the test's own making in PyOpenCL's place."""
    found: list[FakePlatform] = []
    driver = SimpleNamespace(get_platforms=lambda: found, LogicError=RuntimeError)
    monkeypatch.setattr(opencl, "_import_pyopencl", lambda: driver)
    return found


def test_a_platform_that_is_not_here_is_unavailable(platforms: list[FakePlatform]) -> None:
    platforms.append(FakePlatform(["a"]))
    with pytest.raises(Unavailable, match=r"no device of .*'NVIDIA CUDA'; platforms here: Intel"):
        registry.open_backend("opencl:nvidia")


def test_a_name_that_matches_two_devices_is_an_error(platforms: list[FakePlatform]) -> None:
    platforms.append(FakePlatform(["first", "second"]))
    with pytest.raises(Refused, match=r"opencl:intel matches 2 devices: first .* second"):
        registry.open_backend("opencl:intel")


@pytest.mark.parametrize(
    ("lacking", "value", "sentence"),
    [
        ("double_fp_config", 0, r" has no double precision, which float kernels need$"),
        (
            "single_fp_config",
            63,
            r" cannot divide with correct rounding, which float kernels need$",
        ),
    ],
    ids=["no doubles", "sloppy division"],
)
def test_a_device_without_exact_floats_runs_features_without_floats(
    lacking: str, value: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PoCL's device, as if it had not declared what it has."""
    monkeypatch.setattr(opencl._import_pyopencl().Device, lacking, value)  # noqa: SLF001 - the device lies, not its driver
    backend, clip = registry.open_backend("opencl:pocl"), noise(37, 35, 2)
    with pytest.raises(Refused, match=sentence) as refusal:
        backend.compute(FEATURE, Arithmetic("ieee-single"), DEBUG, clip)
    facts = backend.facts()
    assert facts["exactness probe"] == f"not run: {refusal.value}"
    assert facts["exactness flags"] == f"{opencl.FLAGS.language} {opencl.CONTRACTION}"
    arithmetic, options = Arithmetic("vmafx"), integer_adm.spec.IntegerAdmOptions(debug=True)
    whole = backend.compute(integer_adm.FEATURE, arithmetic, options, clip)
    assert same(whole, integer_adm.FEATURE.reference(arithmetic, options, clip))
    backend.close()
