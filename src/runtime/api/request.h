#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "runtime/api/event_queue.h"

namespace seqconv::internal {

using Clock = std::chrono::steady_clock;
using CancelState = std::shared_ptr<const std::atomic<bool>>;

/// To whom a request's results go: a function, a queue, or a place in a list.
class Listener {
 public:
  /// Listens for request `number` of a call that is checked.
  Listener(const seqconv_call& call, int64_t number, seqconv_result** place);

  /// Hands a part over; false when the caller wants no more of the request.
  /// std::bad_alloc: nothing was told.
  bool tell_part(OwnResult part);
  /// Hands the result over; false when the caller wants no more of the call.
  bool tell(OwnResult result) noexcept;

 private:
  bool hear(OwnResult result) noexcept;

  seqconv_heard heard_ = nullptr;
  void* user_ = nullptr;
  int64_t number_ = 0;
  std::shared_ptr<EventQueue> queue_;
  Events event_;  // of the result: telling it needs no memory
  seqconv_result** place_ = nullptr;
};

/// A wish, and the way back: one result is told, maybe parts before.
class Request {
 public:
  using Wanted = std::variant<TranslationInput, ScoreRequest, GenerationRequest>;

  Request(Wanted wanted, Listener listener, CancelState cancel);

  const Wanted& wanted() const { return wanted_; }
  /// The text is a document, and its translation a summary.
  bool is_summary = false;
  bool streams = false;

  bool is_told() const { return is_told_; }
  const CancelState& cancel_state() const { return cancel_; }
  const std::optional<Clock::time_point>& deadline() const { return deadline_; }
  /// Why its caller no longer waits for it; kOk where it does.
  Status given_up() const;

  /// The first result is the one. False when the caller wants no more of the call.
  bool tell(OwnResult result) noexcept;
  /// Tells that it was given up; the same answer.
  bool tell_given_up(Status why) noexcept;
  /// All of the text so far: what is new of it is a part. False when the caller has enough.
  bool tell_part(const std::string& text) noexcept;
  /// The text that parts have told.
  const std::string& shown() const { return shown_; }

 private:
  Wanted wanted_;
  Listener listener_;
  CancelState cancel_;
  std::optional<Clock::time_point> deadline_;
  bool is_told_ = false;
  std::string shown_;
};

/// The message of a request that was given up.
const char* given_up_message(Status why);

}  // namespace seqconv::internal

/// Requests under way keep the state.
struct seqconv_cancel_token {
  std::shared_ptr<std::atomic<bool>> state;
};
