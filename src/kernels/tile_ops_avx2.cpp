#define SEQCONV_ISA avx2
#include "kernels/tile_ops_impl.h"
