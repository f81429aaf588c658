#pragma once

#include <memory>
#include <string>

#include "pipeline/system.h"
#include "search/sample.h"

/// What decode_bench times: forced lengths, so that all do the same work.
namespace seqconv::bench {
using namespace internal;

struct DecodeCase {
  int64_t beam = 5;
  int64_t batch = 32;          ///< sentences searched together
  int64_t source_length = 24;  ///< tokens, without </s>
  int64_t length = 24;         ///< tokens that are made
};

/// Something that decodes.
class DecodeRunner {
 public:
  virtual ~DecodeRunner() = default;
  /// What a table calls it.
  virtual std::string name() const = 0;
  /// Output tokens a second of one turn of `seconds` or more.
  virtual double tokens_per_second(double seconds) = 0;
};

/// Our own search over a backend, `replicas` batches at a time.
std::unique_ptr<DecodeRunner> backend_runner(
    std::string name,
    std::shared_ptr<const TranslationBackend> backend,
    int64_t vocabulary,
    const DecodeCase& test,
    int64_t replicas);

/// One text at a time goes on, token by token: each draws the next, but what is
/// read is at random.
std::unique_ptr<DecodeRunner> generation_runner(
    std::string name,
    std::shared_ptr<const LanguageBackend> backend,
    int64_t vocabulary,
    const SamplingOptions& sampling);

/// A program of somebody else, started as PROGRAM DESCRIPTION with sizes and
/// case as JSON. For each line "SECONDS" on its standard input it decodes for
/// about so long and writes a line with its tokens a second.
std::unique_ptr<DecodeRunner> rival_runner(
    const std::string& program, const std::string& description, std::string name);

}  // namespace seqconv::bench
