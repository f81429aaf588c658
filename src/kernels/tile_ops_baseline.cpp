#define SEQCONV_ISA baseline
#include "kernels/tile_ops_impl.h"
