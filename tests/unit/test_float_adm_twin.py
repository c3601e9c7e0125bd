"""How the twin cuts a clip into launches, seen by a device that only writes down."""

from __future__ import annotations

import numpy as np
import pytest
from notebook import GRID_LIMIT, Notebook
from stills import noise

from backends.base import Arithmetic, Refused
from backends.features.float_adm.powers import Powers
from backends.features.float_adm.spec import FloatAdmOptions
from backends.features.float_adm.twin import BATCH, FloatAdmTwin, Workspace


@pytest.mark.parametrize(
    ("frames", "batches"), [(BATCH - 1, 1), (BATCH, 1), (BATCH + 1, 2), (2 * BATCH + 1, 3)]
)
def test_a_batch_stays_within_the_grid_of_a_launch(frames: int, batches: int) -> None:
    device = Notebook()
    twin = FloatAdmTwin(device, "")
    scores = twin.compute(Arithmetic("ieee-single"), FloatAdmOptions(), noise(17, 17, frames))
    assert scores.values.shape == (frames, 7)
    assert [kernel for kernel, _ in device.launches].count("pixels_8") == batches
    assert max(max(size[1:]) for _, size in device.launches) <= GRID_LIMIT


def test_a_scale_is_left_out_but_its_wavelet_is_not() -> None:
    device = Notebook()
    FloatAdmTwin(device, "").compute(
        Arithmetic("ieee-single"), FloatAdmOptions(adm_skip_scale0=True), noise(17, 17, 1)
    )
    kernels = [kernel for kernel, _ in device.launches]
    assert kernels.count("dwt_vertical") == 4
    assert kernels.count("decouple") == 3


def test_every_scale_starts_with_poison_in_all_it_will_write() -> None:
    """Otherwise a launch that leaves a gap reads what a larger scale or the batch before left."""
    device, frames = Notebook(), 3
    FloatAdmTwin(device, "").compute(
        Arithmetic("ieee-single"), FloatAdmOptions(), noise(67, 51, frames)
    )
    expected = [("pixels_8", [4 * frames * 2 * 67 * 51])]
    for width, height in ((67, 51), (34, 26), (17, 13), (9, 7)):
        floats = Workspace.floats(width, height)
        written = [4 * frames * n for name, n in floats.items() if name != "pictures"]
        # the input of a scale gives way to the next one's, once it is read
        read = [4 * frames * 2 * width * height]
        expected += [("dwt_vertical", written), ("dwt_horizontal", read)]
    assert device.poisoned_before == expected


def test_a_cube_asks_for_no_power_of_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> bool:
        pytest.fail("a cube needs no check")

    monkeypatch.setattr(Powers, "check", never)
    FloatAdmTwin(Notebook(), "").compute(
        Arithmetic("ieee-single"), FloatAdmOptions(), noise(17, 17, 1)
    )


def test_powers_that_are_not_the_c_librarys_are_refused_before_any_picture() -> None:
    device, options = Notebook(), FloatAdmOptions(adm_p_norm=2.5)
    with pytest.raises(Refused, match=r"^this device's powers, "):
        FloatAdmTwin(device, "").compute(Arithmetic("ieee-single"), options, noise(17, 17, 1))
    assert [kernel for kernel, _ in device.launches] == ["powers"]


@pytest.mark.parametrize(
    ("p_norm", "fused", "energy"),
    [(3.0, True, (1, 3.0, 0)), (2.5, True, (0, 2.5, 1)), (2.99999, False, (0, 2.99999, 0))],
)
def test_terms_are_told_cube_or_exponent_and_build(
    p_norm: float,
    *,
    fused: bool,
    energy: tuple[int, float, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Powers, "check", lambda *_: fused)
    device, options = Notebook(), FloatAdmOptions(adm_p_norm=p_norm)
    FloatAdmTwin(device, "").compute(Arithmetic("ieee-single"), options, noise(17, 17, 1))
    told = [arguments[7:10] for kernel, arguments in device.arguments if kernel == "terms"]
    cubed, exponent, fuses = energy
    assert told == [(np.int32(cubed), np.float32(exponent), np.int32(fuses))] * 4
