/* Names for code that is compiled once per instruction set: FV_ISA is base, avx2 or avx512, given by the build. */
#ifndef FV_ISA_H
#define FV_ISA_H

#include "base/base.h"

#ifndef FV_ISA
#define FV_ISA base
#endif
#define FV_ISA_NAME(name) FV_PASTE(FV_PASTE(name, _), FV_ISA)

/* Bytes of the widest vector, for kernels written with GNU vector extensions. */
#if defined(FV_ISA_avx512)
#define FV_VECTOR_BYTES 64
#elif defined(FV_ISA_avx2)
#define FV_VECTOR_BYTES 32
#else
#define FV_VECTOR_BYTES 16
#endif

#endif
