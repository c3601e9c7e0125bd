import numpy as np
from numpy.typing import NDArray

HAS_RCPSS: bool

def read_table(table: NDArray[np.uint32]) -> None: ...
def check_table(table: NDArray[np.uint32]) -> tuple[int, int]: ...
