// Holds the mixer to what a mixer must do, then trains a tiny language model with it. Exit
// code 1 when something is wrong.
#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "new_mixer.h"

namespace {

void require(bool holds, const std::string& what) {
  if (!holds)
    throw std::runtime_error("wrong: " + what);
}

/// The largest difference, which must be that of rounding in float64.
double require_equal(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  require(got.sizes() == wanted.sizes(), what + ": the shapes differ");
  const double difference = (got - wanted).abs().max().item<double>();
  require(difference < 1e-12, what + ": they differ by " + std::to_string(difference));
  return difference;
}

NewMixer small_mixer() {
  NewMixer mixer(NewMixerOptions(6).heads(3).kernel_size(4));
  mixer->to(at::kDouble);
  return mixer;
}

at::Tensor normal(at::IntArrayRef sizes) {
  return at::randn(sizes, at::kDouble);
}

/// x [B, T, C] in steps of `size` inputs, the last one of what is left.
at::Tensor in_steps(NewMixer& mixer, const at::Tensor& x, int64_t size) {
  NewMixerState state = mixer->initial_state(x.size(0));
  const auto sizes = state.window.sizes().vec();
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& part : x.split(size, 1))
    outputs.push_back(mixer->step(part, state));
  require(state.window.sizes() == sizes, "a state has grown");
  return at::cat(outputs, 1);
}

void check_steps() {
  NewMixer mixer = small_mixer();
  const at::Tensor x = normal({2, 10, 6});
  const at::Tensor whole = mixer->forward(x);
  const double one = require_equal(in_steps(mixer, x, 1), whole, "steps of 1");
  const double three = require_equal(in_steps(mixer, x, 3), whole, "steps of 3");
  std::cout << "steps of 1 and 3 equal the whole sequence: " << std::max(one, three) << '\n';
}

void check_lengths() {
  NewMixer mixer = small_mixer();
  const at::Tensor x = normal({2, 7, 6});
  const at::Tensor padded = mixer->forward(x, at::tensor({7, 4}));
  const at::Tensor alone = mixer->forward(x.slice(0, 1).slice(1, 0, 4));
  require_equal(padded.slice(0, 1).slice(1, 0, 4), alone, "a padded row");
  require(padded[1].slice(0, 4).eq(0).all().item<bool>(), "padding must give zero");
  std::cout << "padding changes nothing\n";
}

void check_reorder() {
  NewMixer mixer = small_mixer();
  const at::Tensor x = normal({3, 6, 6}), rows = at::tensor({2, 0, 0, 1}, at::kLong);
  NewMixerState state = mixer->initial_state(3);
  mixer->step(x.slice(1, 0, 4), state);
  reorder(state, rows);
  const at::Tensor chosen = x.index_select(0, rows);
  const at::Tensor y = mixer->step(chosen.slice(1, 4), state);
  require_equal(y, mixer->forward(chosen).slice(1, 4), "steps after reorder");
  std::cout << "reorder picks the right rows\n";
}

/// Compares the slope of a weighted sum of outputs along one direction for each input with
/// central differences.
void check_gradients() {
  NewMixer mixer = small_mixer();
  const at::Tensor x = normal({2, 5, 6}).requires_grad_(), weights = normal({2, 5, 6});
  const at::Tensor lengths = at::tensor({5, 3});
  const auto value = [&] { return (mixer->forward(x, lengths) * weights).sum(); };
  value().backward();
  auto inputs = mixer->named_parameters();
  inputs.insert("x", x);
  const at::NoGradGuard no_grad;
  double largest = 0;
  for (const auto& input : inputs) {
    at::Tensor tensor = input.value();
    require(tensor.grad().defined(), "gradient of " + input.key() + ": there is none");
    const at::Tensor direction = at::randn_like(tensor);
    const double slope = (tensor.grad() * direction).sum().item<double>(), h = 1e-5;
    tensor.add_(direction, h);
    const double after = value().item<double>();
    tensor.sub_(direction, 2 * h);
    const double before = value().item<double>();
    tensor.add_(direction, h);
    const double error = std::abs((after - before) / (2 * h) - slope);
    require(error < 1e-7, "gradient of " + input.key() + ": off by " + std::to_string(error));
    largest = std::max(largest, error);
  }
  std::cout << "gradients equal central differences: " << largest << '\n';
}

constexpr int64_t kWords = 12, kChannels = 32, kKernel = 4;

/// The tokens of a made-up language: the answer to token i is the one i % K steps before it.
struct Batch {
  at::Tensor tokens;   ///< [B, T] int64
  at::Tensor answers;  ///< [B, T - K + 1] int64, for the last ones
};

Batch draw_batch() {
  const at::Tensor tokens = at::randint(kWords, {16, 24}, at::kLong);
  const at::Tensor from = at::arange(tokens.size(1)) - tokens.remainder(kKernel);
  return {tokens, tokens.gather(1, from.clamp_min(0)).slice(1, kKernel - 1)};
}

/// Embedding, mixer with a residual connection, linear.
struct TinyModelImpl : torch::nn::Module {
  TinyModelImpl() {
    register_module("embedding", embedding);
    register_module("mixer", mixer);
    register_module("head", head);
  }
  /// tokens [B, T] -> logits [B, T, V].
  at::Tensor forward(const at::Tensor& tokens) {
    const at::Tensor x = embedding->forward(tokens);  // [B, T, C]
    return head->forward(x + mixer->forward(x));
  }
  at::Tensor step(const at::Tensor& tokens, NewMixerState& state) {
    const at::Tensor x = embedding->forward(tokens);
    return head->forward(x + mixer->step(x, state));
  }

  torch::nn::Embedding embedding{kWords, kChannels};
  NewMixer mixer{NewMixerOptions(kChannels).heads(4).kernel_size(kKernel)};
  torch::nn::Linear head{kChannels, kWords};
};
TORCH_MODULE(TinyModel);

at::Tensor loss_of(TinyModel& model, const Batch& batch) {
  const at::Tensor logits = model->forward(batch.tokens).slice(1, kKernel - 1);
  return at::cross_entropy_loss(logits.flatten(0, 1), batch.answers.flatten());
}

/// Updates by plain gradient descent: torch/optim would be three more seconds to compile.
void train(TinyModel& model) {
  constexpr int kMaxUpdates = 2000;
  const double before = loss_of(model, draw_batch()).item<double>();
  double loss = before;
  int updates = 0;
  for (; loss > 0.02 && updates < kMaxUpdates; ++updates) {
    model->zero_grad();
    const at::Tensor batch_loss = loss_of(model, draw_batch());
    batch_loss.backward();
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : model->parameters())
      parameter.sub_(parameter.grad(), 0.5);
    loss = batch_loss.item<double>();
  }
  std::cout << "loss " << before << " before, " << loss << " after " << updates << " updates\n";
}

/// Answers new sequences one step at a time.
void check_answers(TinyModel& model) {
  const at::NoGradGuard no_grad;
  const Batch batch = draw_batch();
  NewMixerState state = model->mixer->initial_state(batch.tokens.size(0));
  std::vector<at::Tensor> given;
  for (const at::Tensor& token : batch.tokens.split(1, 1))
    given.push_back(model->step(token, state).argmax(-1));
  const at::Tensor right = at::cat(given, 1).slice(1, kKernel - 1).eq(batch.answers);
  const auto count = right.sum().item<int64_t>();
  std::cout << count << " of " << right.numel() << " new tokens right, step by step\n";
  require(count == right.numel(), "the model has not learned its language");
}

void check_all() {
  check_steps();
  check_lengths();
  check_reorder();
  check_gradients();
  TinyModel model;
  train(model);
  check_answers(model);
}

}  // namespace

int main() {
  try {
    at::set_num_threads(1);
    at::manual_seed(1);
    check_all();
  } catch (const c10::Error& error) {
    std::cerr << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
