#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "seqconv/base/enum_names.h"
#include "seqconv/base/log.h"
#include "seqconv/decode/sample.h"
#include "seqconv/decode/search.h"

/// The door between the torch-free program and the shared library with the
/// verbs that need tensors. Plain structs only.
namespace seqconv {

struct TrainArguments {
  std::string config;                  ///< a file
  std::string configurations;          ///< folder of those that go by name
  std::vector<std::string> overrides;  ///< --set key=value
  std::string output;
  bool resume = false;
  std::string init_from;
  bool dry_run = false;
};

enum class OutputFormat { kText, kJson };
template <>
struct EnumNames<OutputFormat> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, OutputFormat>>(
          {{"text", OutputFormat::kText}, {"json", OutputFormat::kJson}});
};

/// What `describe_config` writes: a configuration, or its page of the
/// reference.
enum class ConfigFormat { kToml, kMarkdown };

struct TranslateArguments {
  std::vector<std::string> models;
  SearchOptions search;
  std::vector<std::string> search_given;  ///< keys set on the command line;
                                          ///< the model's defaults fill others
  int64_t batch_tokens = 4096;
  int64_t buffer_lines = 1024;
  int64_t threads = 0;  ///< within an operation; 0 = all cores
  OutputFormat format = OutputFormat::kText;
  std::string input;        ///< a file of text or binarised; "": the stream
  bool json_input = false;  ///< objects with "text" and "target_prefix"
  bool strict = false;      ///< the first line that fails ends the run
  bool stats = false;       ///< speed on standard error at the end
};

struct ScoreArguments {
  std::string model;
  std::string source;
  std::string target;
  int64_t batch_tokens = 4096;
  int64_t threads = 0;
  bool strict = false;
};

struct PerplexityArguments {
  std::string model;
  std::string input;           ///< a file of text or binarised; "": the stream
  int64_t block = 0;           ///< tokens; 0 = as it was trained
  int64_t context_window = 0;  ///< tokens of a block that are read again
  int64_t batch_tokens = 4096;
  int64_t threads = 0;
  OutputFormat format = OutputFormat::kText;
  bool strict = false;
};

struct GenerateArguments {
  std::string model;
  std::string prompt;
  int64_t length = 200;  ///< tokens
  int64_t seed = 1;
  SamplingOptions sampling;
  int64_t threads = 0;
  bool stats = false;  ///< speed on standard error at the end
};

/// Raised whenever anything in this file changes.
inline constexpr int kEngineVersion = 6;

/// The functions of libseqconv_engine.so, found by the name of its one
/// exported symbol, `extern "C" const EngineTable* seqconv_engine()`. They
/// throw seqconv::Error and nothing else. Both sides hold their own copy of the
/// base layer: what it keeps in variables (the log level) is passed on here.
struct EngineTable {
  int version = kEngineVersion;
  void (*set_log_level)(LogLevel) = nullptr;
  void (*train)(const TrainArguments&) = nullptr;
  /// Every key of a training configuration with default and help.
  std::string (*describe_config)(ConfigFormat) = nullptr;
  void (*translate)(const TranslateArguments&, std::istream&, std::ostream&) =
      nullptr;
  void (*score)(const ScoreArguments&, std::ostream&) = nullptr;
  void (*perplexity)(const PerplexityArguments&, std::istream&, std::ostream&) =
      nullptr;
  void (*generate)(const GenerateArguments&, std::ostream&) = nullptr;
};

}  // namespace seqconv
