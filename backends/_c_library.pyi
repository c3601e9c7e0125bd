import numpy as np
from numpy.typing import NDArray

def powf(
    values: NDArray[np.float32],
    exponents: NDArray[np.float32],
    results: NDArray[np.float32],
    threads: int,
) -> None: ...
