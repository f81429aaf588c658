// Times kernels::packed_linear in one thread, beside what a core can multiply
// and read at most and beside at::linear.
//
//   linear_bench [--rows 1 5 32 160] [--megabytes 64] [--repeats 5]
//                [--type float32|bfloat16|int8]
//
// at::linear and the ceilings stay float32's, whatever the type.
//
// Every shape has as many weights, one after the other, as fill so many
// megabytes: with more than the last-level cache they come from memory, as
// those of a model do; with 0 there is one, which stays in the caches.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "ceilings.h"
#include "kernels/packed_linear.h"
#include "timing.h"

namespace {

using namespace seqconv::internal;
using namespace seqconv::bench;
using kernels::LinearEnd;
using kernels::WeightType;

struct LinearShape {
  int64_t K, N;
  LinearEnd end;
  const char* name;

  int64_t weight_rows() const { return end == LinearEnd::kGlu ? 2 * N : N; }
  int64_t weight_bytes() const { return weight_rows() * K * 4; }
};

const LinearShape kShapes[] = {
    {512, 512, LinearEnd::kNone, "none"},
    {512, 512, LinearEnd::kGlu, "glu"},
    {512, 2048, LinearEnd::kRelu, "relu"},
    {2048, 512, LinearEnd::kNone, "none"},
    {512, 10000, LinearEnd::kNone, "none"}};

void serial(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) {
  body(0, count);
}

/// The same weights many times, packed and plain, and what they are multiplied
/// with.
class LinearCase {
 public:
  LinearCase(const LinearShape& shape, int64_t rows, int64_t bytes, WeightType type)
      : shape_(shape),
        x_(at::randn({rows, shape.K})),
        bias_(at::randn({shape.weight_rows()})),
        y_(at::empty({rows, shape.N})) {
    const int64_t copies = std::max<int64_t>(1, bytes / shape.weight_bytes());
    const at::Tensor weight = at::randn({shape.weight_rows(), shape.K});
    for (int64_t i = 0; i < copies; ++i) {
      plain_.push_back(weight.clone());
      packed_.emplace_back(
          weight.const_data_ptr<float>(),
          shape.weight_rows(),
          shape.K,
          shape.end == LinearEnd::kGlu,
          type);
    }
  }

  void packed() {
    const kernels::LinearPass pass = {
        .rows = x_.size(0),
        .x = x_.const_data_ptr<float>(),
        .bias = bias_.const_data_ptr<float>(),
        .end = shape_.end,
        .y = y_.mutable_data_ptr<float>()};
    packed_linear(packed_[next()], pass, serial);
  }
  void rival() { at::linear(x_, plain_[next()], bias_); }
  void read() {
    const at::Tensor& w = plain_[next()];
    volatile double keep = read_through(w.const_data_ptr<float>(), w.numel() * 4);
    static_cast<void>(keep);
  }

 private:
  size_t next() {
    turn_ = (turn_ + 1) % plain_.size();
    return turn_;
  }

  const LinearShape& shape_;
  at::Tensor x_, bias_, y_;
  std::vector<at::Tensor> plain_;
  std::vector<kernels::PackedLinear> packed_;
  size_t turn_ = 0;
};

void time_shape(
    const LinearShape& shape,
    int64_t rows,
    int64_t megabytes,
    WeightType type,
    const TimingOptions& timing) {
  LinearCase timed(shape, rows, megabytes << 20, type);
  const auto t = median_seconds(
      {[&] { timed.packed(); },
       [&] { timed.rival(); },
       [&] { timed.read(); },
       [&] { fma_burst(1, serial); }},
      timing);
  const auto bytes = static_cast<double>(shape.weight_bytes());
  const double flops = bytes / 2 * static_cast<double>(rows);
  const double peak = fma_burst_flops(1) / t[3], read = bytes / t[2];
  std::printf(
      "M %4ld K %5ld N %6ld %-5s %9.1f us %6.1f GFLOP/s (%5.1f %% of %5.1f) %6.2f GB/s (%5.1f %% "
      "of %5.1f)  at::linear %9.1f us: x %.2f\n",
      rows,
      shape.K,
      shape.N,
      shape.name,
      t[0] * 1e6,
      flops / t[0] / 1e9,
      100 * flops / t[0] / peak,
      peak / 1e9,
      bytes / t[0] / 1e9,
      100 * bytes / t[0] / read,
      read / 1e9,
      t[1] * 1e6,
      t[1] / t[0]);
  std::fflush(stdout);
}

void time_packing() {
  constexpr int64_t N = 12800, K = 4096;
  const at::Tensor weight = at::randn({N, K});
  const double seconds = median(
      {seconds_of([&] { kernels::PackedLinear(weight.const_data_ptr<float>(), N, K); }, 1),
       seconds_of([&] { kernels::PackedLinear(weight.const_data_ptr<float>(), N, K); }, 1)});
  std::printf("packing %.1f M weights: %.3f s\n", N * K / 1e6, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int64_t> rows = {1, 5, 32, 160};
  int64_t megabytes = 64;
  TimingOptions timing;
  CLI::App app{"Products with packed weights against the machine and at::linear"};
  app.add_option("--rows", rows, "M")->check(CLI::PositiveNumber);
  app.add_option("--megabytes", megabytes, "of weights that take turns");
  std::string type = "float32";
  app.add_option("--type", type, "of the weights");
  app.add_option("--repeats", timing.repeats)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  time_packing();
  for (const LinearShape& shape : kShapes)
    for (const int64_t M : rows)
      time_shape(shape, M, megabytes, parse_enum<WeightType>(type, "--type"), timing);
  return 0;
}
