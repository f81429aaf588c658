#include "seqconv/nn/linear.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

namespace seqconv {

LinearImpl::LinearImpl(
    int64_t in,
    int64_t out,
    const InitGenerator& generator,
    int64_t blocks,
    double gain) {
  weight = register_parameter(
      "weight",
      xavier_uniform({out, in}, in, out / blocks, generator, gain));
  bias = register_parameter("bias", at::zeros({out}));
}

at::Tensor LinearImpl::forward(const at::Tensor& x) const {
  return at::linear(x, weight, bias);
}

}  // namespace seqconv
