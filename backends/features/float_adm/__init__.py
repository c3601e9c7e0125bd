"""Float ADM: the compiled reference, the kernels and the twin that drives them."""

from backends.features.float_adm.feature import FloatAdm

FEATURE = FloatAdm()
