// The kernel dialect in CUDA C++. Kernels use these words and carry no #ifdef of their own.
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long long ulong;
static_assert(sizeof(long) == 8, "long has 64 bits, as in OpenCL");

#define KERNEL extern "C" __global__ void          // a device entry point
#define FUNCTION static __device__ __forceinline__ // a device function
#define GLOBAL                                     // pointer into device memory
#define CONSTANT static __device__ const           // a table of constants, at file scope
#define ID(axis)                                                                                   \
    (axis == 0   ? (int)(blockIdx.x * blockDim.x + threadIdx.x)                                    \
     : axis == 1 ? (int)(blockIdx.y * blockDim.y + threadIdx.y)                                    \
                 : (int)(blockIdx.z * blockDim.z + threadIdx.z)) // work item index

FUNCTION uint as_uint(float value) { return __float_as_uint(value); }
FUNCTION float as_float(uint bits) { return __uint_as_float(bits); }
FUNCTION ulong as_ulong(double value) { return (ulong)__double_as_longlong(value); }
FUNCTION double as_double(ulong bits) { return __longlong_as_double((long long)bits); }
FUNCTION int clz(ulong value) { return __clzll((long long)value); } // leading zeros; value > 0
// Built in: fabs; fma on doubles, a*b+c rounded once whatever the flags.
