#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "pipeline/scorer.h"
#include "runtime/api/request.h"

namespace seqconv::internal {

/// Answers requests; one of both systems is there.
struct Answerer {
  const Translator* translator = nullptr;
  const LanguageSystem* language = nullptr;
  int64_t batch_tokens = 0;
  int64_t workers = 1;
};

/// Holds what concerns those who answer, beside their requests.
struct Busy {
  const std::atomic<bool>* closing = nullptr;  ///< true once all shall end
  std::function<void()> meanwhile{};           ///< made now and then; throws nothing
};

/// Requests of one kind that are worked at together, by whatever threads. Each is told once, one
/// at a time.
class Group {
 public:
  /// Both outlive the group.
  Group(const std::vector<Request*>& requests, const Busy& busy);

  /// Tells those that were given up; true when nobody waits any more.
  bool stops();
  void tell(size_t number, OwnResult result);
  void tell_part(size_t number, const std::string& text);
  /// The parts of this request were enough for its caller.
  bool has_enough(size_t number) const { return enough_[number] != 0; }
  bool is_closing() const { return busy_.closing != nullptr && *busy_.closing; }
  bool is_over() const { return over_; }
  /// Requests of a queue are of calls of their own: an answer concerns none of the others.
  bool is_one_call() const { return busy_.closing == nullptr; }
  void meanwhile() const {
    if (busy_.meanwhile)
      busy_.meanwhile();
  }

  const std::vector<Request*>& requests() const { return requests_; }

 private:
  void give_up(Status why);
  void count_told();
  Clock::time_point first_deadline() const;

  const std::vector<Request*>& requests_;
  const Busy& busy_;
  CancelState common_;  // of all requests, where they have one in common
  bool own_tokens_ = false;
  std::atomic<Clock::time_point> first_deadline_ = Clock::time_point::max();
  std::mutex telling_;
  std::atomic<bool> over_ = false;
  std::vector<char> enough_;
};

/// Answers requests that are alike (see alike()). Exceptions, std::bad_alloc or an Error,
/// concern all that have no result then.
void answer(const Answerer& answerer, const std::vector<Request*>& requests, const Busy& busy = {});

/// Two requests that one call of a model's may answer at a time.
bool alike(const Request& a, const Request& b);

}  // namespace seqconv::internal
