// The kernel dialect in OpenCL C 1.2. Kernels use these words and carry no #ifdef of their own.
#ifdef cl_khr_fp64 // a device without doubles runs features without floating point
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
// The only guard against fused a*b+c under OpenCL: no build option does it.
#pragma OPENCL FP_CONTRACT OFF

#define KERNEL __kernel void                // a device entry point
#define FUNCTION static inline              // a device function
#define GLOBAL __global                     // pointer into device memory
#define CONSTANT __constant                 // a table of constants, at file scope
#define ID(axis) ((int)get_global_id(axis)) // index of the work item, axis 0 to 2
// Built in: uchar, ushort, uint; long and ulong of 64 bits; clz, the leading zeros of a ulong;
// as_uint, as_float, as_ulong and as_double, which keep the bits; fabs; fma on doubles, a*b+c
// rounded once.
