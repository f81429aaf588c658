#pragma once

namespace seqconv::ops {

/// Non-linearity of a short convolution's sums z: none, or z * sigmoid(z).
enum class ConvActivation { kNone, kSilu };

}  // namespace seqconv::ops
