#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/sentence_probe.h"
#include "seqconv/runtime.h"

namespace seqconv::internal {

/// A model that is served: "de-en=DIR", or a language model, "NAME=DIR".
struct ServedModel {
  std::string source;  ///< code of its language, as it was written, or the name
  std::string target;  ///< "": a language model
  std::string folder;
  std::string terminology{};  ///< a file of terms; "": none

  bool is_language_model() const { return target.empty(); }
  std::string name() const { return is_language_model() ? source : source + "-" + target; }
};

/// Reads "de-en=DIR" or "pt-BR:en=DIR" (a ':' where a code holds '-'). UsageError else.
ServedModel read_served_model(const std::string& text);

/// Gives the model of a pair its terms, by "de-en=FILE" as read_served_model. UsageError if none
/// has it, or it has some; Error for a file that holds no terms.
void add_terminology(const std::string& text, std::vector<ServedModel>& models);

/// Reads "NAME=DIR". UsageError else.
ServedModel read_served_language_model(const std::string& text);

struct ModelsOptions {
  RuntimeOptions runtime{};  ///< of each model
  double keep_seconds = 0;   ///< a model that is idle so long is closed; 0: never
  int64_t memory_bytes = 0;  ///< of all that are open: files and weights; 0: any
  /// One to look into is closed when it is idle so long, or sooner by keep_seconds.
  double keep_inspected_seconds = 60;
};

/// A model that is open: one of the three.
struct OpenModel {
  std::optional<Translator> translator;
  std::optional<Generator> generator;
  std::optional<SentenceProber> prober;

  int64_t weight_bytes() const;  ///< beside its file
};

/// The purpose that a model is opened for: its own, or to look into a translation model, which
/// opens it beside, in its own type of numbers.
enum class Use { kRun, kInspect };

/// Models that are opened when they are wanted, and closed when they are not. Any thread.
class Models {
 public:
  using Opened = std::shared_ptr<const OpenModel>;

  /// UsageError for what is there twice; Error for a folder without a model.
  Models(std::vector<ServedModel> served, const ModelsOptions& options);

  const std::vector<ServedModel>& served() const { return served_; }
  /// The number of the model between two languages, whose codes may be written otherwise
  /// (normal_code), or of the language model that `source` names; none: there is none.
  std::optional<size_t> find(std::string_view source, std::string_view target) const;

  /// A model, opened if need be, in this thread: others may be opened at the same time. It stays
  /// open as long as somebody holds it. CallError 503 while memory is wanted by others; Error as
  /// of Translator and Generator.
  Opened open(size_t number, Use use = Use::kRun);

  /// Opens what is asked for from now on anew: folders may have changed. Requests under way keep
  /// the model that they have, and so do all where the new one cannot be opened, which is logged.
  void reload();

  /// Closes what has been idle for too long.
  void close_idle();

  struct State {
    bool is_open = false;
    int64_t bytes = 0;
    int64_t times_opened = 0;
  };
  std::vector<State> states(Use use = Use::kRun) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Place {
    std::mutex opening;  // held by who opens it
    Opened model;
    int64_t bytes = 0;
    int64_t times_opened = 0;
    int64_t reloads = 0;  // before it was opened
    Clock::time_point used{};
  };

  size_t place_number(size_t number, Use use) const;
  Opened open_now(size_t number, Use use) const;
  Opened open_or_keep(size_t number, Use use, const Opened& before) const;
  int64_t open_bytes() const;
  Opened close_oldest();
  std::vector<Opened> make_room(int64_t bytes);

  const std::vector<ServedModel> served_;
  const ModelsOptions options_;
  mutable std::mutex mutex_;                    // of all places but their `opening`
  std::vector<std::unique_ptr<Place>> places_;  // to run all models, then to look into them
  int64_t reloads_ = 0;
};

}  // namespace seqconv::internal
