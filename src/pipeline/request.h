#pragma once

#include <functional>
#include <new>
#include <string>
#include <vector>

#include "search/step_decoder.h"
#include "text/symbol_count.h"

/// Holds what requests have in common, whatever they ask for.
namespace seqconv::internal {

/// The outcome of a request.
enum class RequestStatus {
  kDone,
  kInvalid,      ///< its text or options make no sense to the model
  kFailed,       ///< the model gives it no finite probability
  kOutOfMemory,  ///< there is not memory enough for it
  kStopped,      ///< its caller wanted no more of it
};

struct RequestOutcome {
  RequestStatus status = RequestStatus::kDone;
  /// Why it failed; "" where it is done.
  std::string error;
  /// Tells what was cut or replaced, in the order in which it was.
  std::vector<std::string> notes;

  void fail(RequestStatus why, std::string message) {
    error = std::move(message);
    status = why;
  }
};

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

/// Says that symbols of `what` ("the text") are unknown; "" where none is.
std::string unknown_note(const SymbolCount& count, const char* what);

/// Does `work` of a single request: what it throws becomes the outcome.
template <class Work>
void run_request(RequestOutcome& outcome, const Work& work) {
  try {
    work();
  } catch (const Stopped& error) {
    outcome.fail(RequestStatus::kStopped, error.what());
  } catch (const NoProbability& error) {
    outcome.fail(RequestStatus::kFailed, error.what());
  } catch (const Error& error) {
    outcome.fail(RequestStatus::kInvalid, error.what());
  } catch (const std::bad_alloc&) {
    outcome.fail(RequestStatus::kOutOfMemory, kOutOfMemory);
  }
}

}  // namespace seqconv::internal
