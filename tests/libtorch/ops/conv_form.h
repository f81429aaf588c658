#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "libtorch/ops/on_device.h"
#include "support/gradients.h"

/// lightconv and dynamicconv behind one door, for tests of what they share.
namespace seqconv::ops {
using namespace internal;

enum class Form { kLight, kDynamic };

inline std::ostream& operator<<(std::ostream& out, Form form) {
  return out << (form == Form::kLight ? "lightconv" : "dynamicconv");
}

/// Suites of both, on every device: L, D, LOnCuda, DOnCuda.
using ConvParameter = testing::OnDevice<Form>;
class ConvDeviceTest : public ::testing::TestWithParam<ConvParameter> {
 protected:
  void SetUp() override {
    SEQCONV_REQUIRE_DEVICE(GetParam().device);
    at::manual_seed(1);
  }

 private:
  testing::DeviceScope scope_{GetParam().device};
};
inline auto conv_parameters() {
  return ::testing::Values(
      ConvParameter{Form::kLight, at::kCPU},
      ConvParameter{Form::kDynamic, at::kCPU},
      ConvParameter{Form::kLight, at::kCUDA},
      ConvParameter{Form::kDynamic, at::kCUDA});
}
inline std::string conv_parameter_name(const ::testing::TestParamInfo<ConvParameter>& info) {
  return concat(
      info.param.value == Form::kLight ? "L" : "D", info.param.device == at::kCUDA ? "OnCuda" : "");
}

struct ConvSizes {
  int64_t B = 2, T = 5, C = 6, H = 2, K = 3, padding_left = 2;
};

inline std::ostream& operator<<(std::ostream& out, const ConvSizes& s) {
  return out << "B " << s.B << " T " << s.T << " C " << s.C << " H " << s.H << " K " << s.K
             << " padding_left " << s.padding_left;
}

/// What a call takes besides x, logits and bias.
struct ConvCall {
  Form form = Form::kLight;
  ConvSizes sizes;
  Normalization normalization = Normalization::kSoftmax;
  DropConnect drop;
  std::optional<at::Tensor> lengths;
  bool renormalize_edges = false;

  std::vector<int64_t> logit_shape() const {
    const ConvSizes& s = sizes;
    return form == Form::kLight ? std::vector<int64_t>{s.H, s.K}
                                : std::vector<int64_t>{s.B, s.T, s.H, s.K};
  }

  /// {x, logits, bias}, values that bfloat16 holds exactly.
  std::vector<at::Tensor> inputs(at::ScalarType type = at::kDouble) const {
    const auto draw = [&](at::IntArrayRef shape) {
      return at::randn(shape, at::kFloat).to(at::kBFloat16).to(type);
    };
    return {draw({sizes.B, sizes.T, sizes.C}), draw(logit_shape()), draw({sizes.C})};
  }

  at::Tensor run(const std::vector<at::Tensor>& in) const {
    return form == Form::kLight ? device::lightconv(in[0], in[1], options(in))
                                : device::dynamicconv(in[0], in[1], options(in));
  }
  at::Tensor reference(const std::vector<at::Tensor>& in) const {
    return form == Form::kLight ? lightconv_reference(in[0], in[1], options(in))
                                : dynamicconv_reference(in[0], in[1], options(in));
  }
  testing::TensorFunction function() const {
    return [this](const auto& in) { return run(in); };
  }
  testing::TensorFunction reference_function() const {
    return [this](const auto& in) { return reference(in); };
  }

  /// The step form over positions [first, first + count) of `in`.
  at::Tensor step(
      const std::vector<at::Tensor>& in, at::Tensor& state, int64_t first, int64_t count) const {
    const at::Tensor x = in[0].narrow(1, first, count);
    const at::Tensor position = at::tensor(first);
    const ConvStepOptions options = {normalization, renormalize_edges, in[2]};
    return form == Form::kLight
        ? device::lightconv_step(x, state, position, in[1], options)
        : device::dynamicconv_step(x, state, position, in[1].narrow(1, first, count), options);
  }

 private:
  ConvOptions options(const std::vector<at::Tensor>& in) const {
    return {sizes.padding_left, normalization, renormalize_edges, drop, bias(in), lengths};
  }
  static std::optional<at::Tensor> bias(const std::vector<at::Tensor>& in) {
    return in[2].defined() ? std::optional(in[2]) : std::nullopt;
  }
};

}  // namespace seqconv::ops
