#define SEQCONV_ISA avx512
#include "kernels/tile_ops_impl.h"
