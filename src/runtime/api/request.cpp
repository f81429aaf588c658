#include "runtime/api/request.h"

#include <algorithm>
#include <utility>

#include "runtime/api/arguments.h"

namespace seqconv::internal {
namespace {

std::chrono::milliseconds timeout_of(const Request::Wanted& wanted) {
  return std::visit([](const auto& request) { return request.timeout; }, wanted);
}

/// A time so far away that adding it would not fit is none.
std::optional<Clock::time_point> deadline_after(std::chrono::milliseconds timeout) {
  constexpr std::chrono::hours kLongest(24 * 365 * 100);
  if (timeout.count() == 0 || timeout > kLongest)
    return std::nullopt;
  return Clock::now() + timeout;
}

/// Bytes that two texts begin with in common, whole characters.
size_t common_bytes(std::string_view a, std::string_view b) {
  auto common = static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + std::ssize(a.substr(0, b.size())), b.begin()).first -
      a.begin());
  const auto continues = [](std::string_view text, size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  while (common > 0 && (continues(a, common) || continues(b, common)))
    --common;
  return common;
}

}  // namespace

Listener::Listener(const seqconv_call& call, int64_t number, seqconv_result** place)
    : heard_(call.heard), user_(call.user), number_(number), place_(place) {
  if (heard_ == nullptr && place_ == nullptr) {
    queue_ = call.queue->events;
    event_.push_back({user_, nullptr});
  }
}

bool Listener::hear(OwnResult result) noexcept {
  try {
    return heard_(user_, number_, result.release()) == 0;
  } catch (...) {  // against the rule
    return false;
  }
}

bool Listener::tell_part(OwnResult part) {
  if (heard_ != nullptr)
    return hear(std::move(part));
  if (queue_ == nullptr)
    return true;
  Events one;
  one.push_back({user_, std::move(part)});
  queue_->add(one);
  return true;
}

bool Listener::tell(OwnResult result) noexcept {
  if (heard_ != nullptr)
    return hear(std::move(result));
  if (queue_ != nullptr) {
    event_.front().result = std::move(result);
    queue_->add(event_);
  } else {
    *place_ = result.release();
  }
  return true;
}

Request::Request(Wanted wanted, Listener listener, CancelState cancel)
    : wanted_(std::move(wanted)),
      listener_(std::move(listener)),
      cancel_(std::move(cancel)),
      deadline_(deadline_after(timeout_of(wanted_))) {}

Status Request::given_up() const {
  if (cancel_ != nullptr && *cancel_)
    return Status::kCancelled;
  return deadline_ && Clock::now() >= *deadline_ ? Status::kTimedOut : Status::kOk;
}

bool Request::tell(OwnResult result) noexcept {
  return std::exchange(is_told_, true) || listener_.tell(std::move(result));
}

bool Request::tell_given_up(Status why) noexcept {
  return is_told_ || tell(make_failure(why, given_up_message(why)));
}

bool Request::tell_part(const std::string& text) noexcept {
  if (is_told_)
    return true;
  try {
    // A batch that is begun again tells what was told before.
    if (shown_.starts_with(text))
      return true;
    const size_t kept = common_bytes(shown_, text);
    OwnResult part = make_part(kept, text.substr(kept));
    if (part == nullptr)
      return true;
    std::string shown = text;
    const bool goes_on = listener_.tell_part(std::move(part));
    shown_.swap(shown);
    return goes_on;
  } catch (const std::bad_alloc&) {
    return true;
  }
}

const char* given_up_message(Status why) {
  return why == Status::kTimedOut ? "its timeout passed before it was done"
                                  : "cancelled before it was done";
}

}  // namespace seqconv::internal

namespace api = seqconv::internal;

extern "C" {

seqconv_status seqconv_cancel_token_new(seqconv_cancel_token** token) {
  return api::guarded(SEQCONV_ERROR, [&] {
    seqconv_cancel_token*& place = api::required(token, "token");
    auto own = std::make_unique<seqconv_cancel_token>();
    own->state = std::make_shared<std::atomic<bool>>(false);
    place = own.release();
  });
}

void seqconv_cancel(seqconv_cancel_token* token) {
  if (token != nullptr)
    *token->state = true;
}

int32_t seqconv_is_cancelled(const seqconv_cancel_token* token) {
  return token != nullptr && *token->state ? 1 : 0;
}

void seqconv_cancel_token_free(seqconv_cancel_token* token) {
  delete token;
}

}  // extern "C"
