#include "seqconv/pipeline/engine.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <new>
#include <thread>

#include "engine/verbs.h"
#include "seqconv/base/error.h"
#include "seqconv/base/log.h"

namespace seqconv::engine {

void set_threads(int64_t threads) {
  if (threads <= 0)
    return;
  // Thousands of threads that wait for each other would stop the machine.
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t most = std::min<int64_t>(threads, 4 * cores);
  if (most < threads) {
    log_warning(
        threads,
        " threads were asked for, but there are ",
        cores,
        " cores: using ",
        most);
  }
  at::set_num_threads(static_cast<int>(most));
}

namespace {

// LibTorch's messages without the stack, and nothing but seqconv::Error.
template <class Work>
auto guarded(const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    fail(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    fail("out of memory; smaller batches need less");
  } catch (const std::exception& error) {
    fail("internal error: ", error.what());
  }
}

const EngineTable kTable{
    .set_log_level = [](LogLevel level) { seqconv::set_log_level(level); },
    .train =
        [](const TrainArguments& arguments) {
          guarded([&] { train(arguments); });
        },
    .describe_config =
        [](ConfigFormat format) {
          return guarded([&] { return describe_config(format); });
        },
    .translate =
        [](const TranslateArguments& arguments,
           std::istream& in,
           std::ostream& out) {
          guarded([&] { translate(arguments, in, out); });
        },
    .score = [](const ScoreArguments& arguments,
                std::ostream& out) { guarded([&] { score(arguments, out); }); },
    .perplexity =
        [](const PerplexityArguments& arguments,
           std::istream& in,
           std::ostream& out) {
          guarded([&] { perplexity(arguments, in, out); });
        },
    .generate =
        [](const GenerateArguments& arguments, std::ostream& out) {
          guarded([&] { generate(arguments, out); });
        },
};

}  // namespace
}  // namespace seqconv::engine

extern "C" SEQCONV_VISIBLE const seqconv::EngineTable* seqconv_engine() {
  return &seqconv::engine::kTable;
}
