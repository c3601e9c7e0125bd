"""Integer ADM: the compiled reference, the kernels without floating point, and their twin."""

from backends.features.integer_adm.feature import IntegerAdm

FEATURE = IntegerAdm()
