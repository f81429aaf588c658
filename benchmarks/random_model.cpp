#include "random_model.h"

#include <unistd.h>

#include <cmath>

#include "base/files.h"
#include "base/random.h"
#include "base/safetensors.h"
#include "base/special_ids.h"
#include "model/model_description.h"
#include "model/model_writing.h"

namespace seqconv::bench {
using namespace internal;
namespace {

struct Size {
  const char* name;
  int64_t encoder_layers;
  int64_t decoder_layers;
  int64_t dim;
  int64_t ffn_dim;
  int64_t heads;
  int64_t vocabulary;
};
constexpr Size kSizes[] = {
    {"tiny", 3, 3, 256, 512, 4, 6000},
    {"iwslt", 7, 6, 512, 1024, 4, 10000},
    {"base", 7, 6, 512, 2048, 8, 32000},
    {"big", 7, 6, 1024, 4096, 16, 32000}};

const Size& find_size(const std::string& name) {
  for (const Size& size : kSizes)
    if (size.name == name)
      return size;
  fail_usage("a size must be tiny, iwslt, base or big, but got ", name);
}

/// 3, 7, 15 and then 31, as far as there are layers.
std::vector<int64_t> growing_kernels(int64_t layers) {
  std::vector<int64_t> kernels;
  for (int64_t i = 0; i < layers; ++i)
    kernels.push_back(i < 3 ? (int64_t{4} << i) - 1 : 31);
  return kernels;
}

void set_stack(StackOptions& stack, int64_t layers, MixerKind kind) {
  stack.layers = layers;
  stack.block = {kind};
  stack.glu =
      kind == MixerKind::kLightConv || kind == MixerKind::kDynamicConv || kind == MixerKind::kTalk;
  if (kind == MixerKind::kTalk)
    stack.max_offsets = growing_kernels(layers);
  else if (kind != MixerKind::kSelfAttention && kind != MixerKind::kAverageAttention)
    stack.kernel_sizes = growing_kernels(layers);
}

/// Numbers in [-bound, bound] around `mean`, a function of seed and place.
void produce_numbers(const ParameterShape& parameter, uint64_t seed, const ByteSink& sink) {
  const auto& shape = parameter.shape;
  const bool norm = parameter.name.find("norm.weight") != std::string::npos;
  const float bound = shape.size() < 2 ? 0.0F : std::sqrt(3.0F / static_cast<float>(shape.back()));
  int64_t left = 1;
  for (const int64_t size : shape)
    left *= size;
  std::vector<float> numbers;
  uint64_t index = 0;
  while (left > 0) {
    numbers.resize(static_cast<size_t>(std::min<int64_t>(left, 65536)));
    for (float& number : numbers) {
      const uint64_t word = mix_words(seed, index++) >> 40;  // 24 bits
      number = (norm ? 1.0F : 0.0F) + bound * (static_cast<float>(word) * 0x1p-23F - 1.0F);
    }
    sink(std::as_bytes(std::span(numbers)));
    left -= static_cast<int64_t>(numbers.size());
  }
}

}  // namespace

ModelToRun sized_model(const std::string& name, MixerKind kind) {
  const Size& size = find_size(name);
  ModelToRun model;
  model.options.dim = size.dim;
  model.options.ffn_dim = size.ffn_dim;
  for (StackOptions* stack : {&model.options.encoder, &model.options.decoder})
    stack->heads = size.heads;
  set_stack(model.options.encoder, size.encoder_layers, kind);
  set_stack(model.options.decoder, size.decoder_layers, kind);
  model.vocabulary = {size.vocabulary, size.vocabulary};
  return model;
}

void write_random_parameters(const ModelToRun& model, Task task) {
  std::map<std::string, TensorSource> tensors;
  uint64_t seed = 1;
  for (const ParameterShape& parameter : list_parameters(model.options, task, model.vocabulary)) {
    const uint64_t own = mix_words(1, seed++);
    tensors[parameter.name] = {
        ElementType::kF32, parameter.shape, [parameter, own](const ByteSink& sink) {
          produce_numbers(parameter, own, sink);
        }};
  }
  stream_safetensors(model.parameters, tensors, {});
}

void save_random_model(const ModelToRun& model, const std::filesystem::path& folder) {
  const TemporaryFolder words;
  const auto write_words = [&](const char* name, int64_t size) {
    std::string lines;
    for (int64_t id = kSpecialIds; id < size; ++id)
      lines += concat("w", id, " 1\n");
    write_file_atomically(words.path() / name, lines);
    return (words.path() / name).string();
  };
  TextOptions options;
  options.subword = Subword::kNone;
  options.source_dictionary = write_words("source", model.vocabulary.source);
  options.target_dictionary = write_words("target", model.vocabulary.target);
  const TranslationText text = TranslationText::given(options);
  write_model_folder(
      folder,
      [&](const std::filesystem::path& file) {
        ModelToRun written = model;
        written.parameters = file;
        write_random_parameters(written, Task::kTranslation);
      },
      [&] {
        write_description(
            TranslationDescription{.folder = folder, .options = model.options, .text = text});
      });
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "decode_bench.XXXXXX").string();
  SEQCONV_CHECK(::mkdtemp(name.data()) != nullptr, "cannot make a temporary folder like ", name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace seqconv::bench
