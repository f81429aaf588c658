#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "seqconv/runtime.h"

namespace seqconv::internal {

/// A model that is served: "de-en=DIR".
struct ServedModel {
  std::string source;  ///< code of its language, as it was written
  std::string target;
  std::string folder;
};

/// Reads "de-en=DIR" or "pt-BR:en=DIR" (a ':' where a code holds '-'). UsageError else.
ServedModel read_served_model(const std::string& text);

struct ModelsOptions {
  RuntimeOptions runtime{};  ///< of each model
  double keep_seconds = 0;   ///< a model that is idle so long is closed; 0: never
  int64_t memory_bytes = 0;  ///< of all that are open: files and weights; 0: any
};

/// There is no memory for one model more before others are idle.
class ModelsBusy : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Models that are opened when they are wanted, and closed when they are not. Any thread.
class Models {
 public:
  using Opened = std::shared_ptr<const Translator>;

  Models(std::vector<ServedModel> served, const ModelsOptions& options);

  const std::vector<ServedModel>& served() const { return served_; }
  /// The number of the model between two languages, whose codes may be written otherwise
  /// (normal_code); none: nothing translates so.
  std::optional<size_t> find(std::string_view source, std::string_view target) const;

  /// A model, opened if need be, in this thread: others may be opened at the same time. It stays
  /// open as long as somebody holds it. ModelsBusy; Error as of Translator.
  Opened open(size_t number);

  /// Opens what is asked for from now on anew: folders may have changed. Requests under way keep
  /// the model that they have.
  void reload();

  /// Closes what has been idle for too long.
  void close_idle();

  struct State {
    bool is_open = false;
    int64_t bytes = 0;
    int64_t times_opened = 0;
  };
  std::vector<State> states() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Place {
    std::mutex opening;  // held by who opens it
    Opened model;
    int64_t bytes = 0;
    int64_t times_opened = 0;
    Clock::time_point used{};
  };

  int64_t open_bytes() const;
  void make_room(int64_t bytes);

  const std::vector<ServedModel> served_;
  const ModelsOptions options_;
  mutable std::mutex mutex_;  // of all places but their `opening`
  std::vector<std::unique_ptr<Place>> places_;
  int64_t reloads_ = 0;
};

}  // namespace seqconv::internal
