#pragma once

#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "search/step_decoder.h"
#include "seqconv/requests.h"
#include "text/symbol_count.h"

/// Holds what requests have in common, whatever they ask for.
namespace seqconv::internal {

/// Makes `result` that of a request that failed; where there is not memory enough for the
/// message, it says that.
void set_failure(Result& result, Status status, std::string_view error) noexcept;

/// Its caller wants no more of a request.
class Stopped : public Error {
 public:
  Stopped() : Error("stopped before it was done") {}
};

/// Asks whether to stop; nothing: never. Asked by any thread of the request's.
using StopQuestion = std::function<bool()>;
inline bool wants_to_stop(const StopQuestion& stop) {
  return stop && stop();
}

inline constexpr const char* kOutOfMemory =
    "out of memory: a shorter text or a smaller beam needs less";

/// Error for a request with both a text and tokens, which stand for one.
void refuse_both(std::string_view text, const char* name, bool has_tokens, const char* tokens);

/// Says that symbols of `what` ("the text") are unknown; "" where none is.
std::string unknown_note(const SymbolCount& count, const char* what);

/// Does `work` of a single request: what it throws becomes the outcome.
template <class Work>
void run_request(Result& outcome, const Work& work) {
  try {
    work();
  } catch (const Stopped& error) {
    set_failure(outcome, Status::kCancelled, error.what());
  } catch (const NoProbability& error) {
    set_failure(outcome, Status::kFailed, error.what());
  } catch (const Error& error) {
    set_failure(outcome, Status::kInvalid, error.what());
  } catch (const std::bad_alloc&) {
    set_failure(outcome, Status::kOutOfMemory, kOutOfMemory);
  }
}

}  // namespace seqconv::internal
