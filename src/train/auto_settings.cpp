#include "train/auto_settings.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "train/auto_tables.h"

namespace seqconv::internal {
namespace {

/// A device does the work of so many threads.
constexpr double kThreadsOfGpu = 40;
/// Threads share work, but not all of it.
constexpr double kThreadPower = 0.8;
constexpr double kDefaultMinutes = 30;
/// Runs whose time is not given but a number of updates or epochs have as much as the data want.
constexpr double kUnknownWork = 160;
/// A line of a language model counts as a sample of so many characters.
constexpr double kCharactersOfSample = 40;
/// Floating-point operations of one thread in a second, roughly.
constexpr double kThreadSpeed = 70e9;
/// With fewer updates than this, a smaller model that has more of them learns more.
constexpr double kFewestUpdates = 3000;
/// Long sources are cut early where there is less work.
constexpr double kWorkOfWholeSources = 40;
/// A batch has room for so many samples of mean length.
constexpr int64_t kRowsOfBatch = 16;
constexpr int64_t kUpdatesOfPass = 200;
/// Words are made of so many pieces, roughly, and a text of long words of more.
constexpr double kCharactersOfPiece = 3.3;
constexpr double kWarmupShare = 0.1;
constexpr double kWarmupUpdates = 400;
constexpr int64_t kKernels[] = {3, 7, 15, 31};

template <size_t kSize, class Row, class Value>
const Row& row_of(const std::array<Row, kSize>& rows, Value Row::*limit, Value value) {
  for (const Row& row : rows)
    if (value <= row.*limit)
      return row;
  return rows.back();
}

/// Chooses one key after the other.
class Chooser {
 public:
  Chooser(const Json& given, const CorpusFacts& facts, const RunBudget& budget)
      : given_(given), facts_(facts), budget_(budget) {
    if (given.contains("task") && given["task"] == "language_model")
      task_ = Task::kLanguageModel;
  }

  AutoSettings choose() {
    set_work();
    choose_all();
    // Long samples or a large text leave few updates to a model of the minutes' size.
    while (by_work_ != kByWork.data() && minutes_ > 0 && updates_that_fit() < kFewestUpdates) {
      --by_work_;
      chosen_ = {};
      choose_all();
    }
    return std::move(chosen_);
  }

 private:
  bool is_given(const char* key) const { return find_key(given_, key) != nullptr; }

  template <class T>
  T value_of(const char* key, T standard) const {
    const Json* found = find_key(given_, key);
    if (found == nullptr)
      found = find_key(chosen_.table, key);
    if (found == nullptr)
      return standard;
    try {
      return found->get<T>();
    } catch (const Json::exception&) {
      return standard;  // reading the configuration says what is wrong with it
    }
  }

  void set(const char* key, Json value) {
    if (!is_given(key))
      set_key(chosen_.table, key, std::move(value));
  }

  /// With why, unless all `keys` are given.
  template <class... Parts>
  void say(std::initializer_list<const char*> keys, const Parts&... parts) {
    std::string line;
    for (const char* key : keys)
      if (const Json* value = find_key(chosen_.table, key))
        line += concat(line.empty() ? "" : ", ", key, " = ", value->dump());
    if (!line.empty())
      chosen_.reasons.push_back(concat(line, ": ", parts...));
  }

  void choose_all() {
    choose_end();
    choose_data();
    choose_text();
    choose_model();
    choose_batches();
    choose_dropout();
    choose_training();
  }

  bool is_long() const { return facts_.source_words > 60 * facts_.samples; }
  bool translates() const { return task_ == Task::kTranslation; }

  int64_t samples() const {
    const auto characters = static_cast<double>(facts_.target_characters);
    return translates() ? facts_.samples
                        : static_cast<int64_t>(characters / kCharactersOfSample) + 1;
  }

  void set_work() {
    const double threads = budget_.on_gpu
        ? kThreadsOfGpu
        : std::pow(static_cast<double>(budget_.threads), kThreadPower);
    const bool counts =
        value_of("training.max_updates", 0.0) > 0 || value_of("training.max_epochs", 0.0) > 0;
    minutes_ = budget_.minutes > 0 ? budget_.minutes : counts ? 0 : kDefaultMinutes;
    work_ = minutes_ > 0 ? minutes_ * threads : kUnknownWork;
    by_data_ = &row_of(kByData, &DataRow::samples, samples());
    by_work_ = &row_of(kByWork, &WorkRow::minutes, std::min(work_, by_data_->work));
  }

  std::string work_text() const {
    if (minutes_ == 0)
      return "a run of no given time";
    return concat(
        minutes_,
        minutes_ == 1 ? " minute with " : " minutes with ",
        budget_.on_gpu ? std::string("a GPU")
                       : concat(budget_.threads, budget_.threads == 1 ? " thread" : " threads"));
  }

  std::string data_text() const {
    return translates() ? concat(facts_.samples, " pairs")
                        : concat(facts_.target_characters, " characters");
  }

  void choose_end() {
    if (minutes_ == budget_.minutes || minutes_ == 0)
      return;
    set("training.max_minutes", minutes_);
    say({"training.max_minutes"}, "nothing says when the run ends; --minutes does");
  }

  void choose_data() {
    const char* files = translates() ? "data.valid_source" : "data.valid";
    if (!facts_.has_ids && !is_given(files) && !is_given("data.valid"))
      set("data.hold_out", 1000);
    say({"data.hold_out"}, "no validation text is given");
    if (translates() && is_long()) {
      set("data.max_source_tokens", work_ > kWorkOfWholeSources ? 400 : 160);
      set("data.max_target_tokens", 120);
      say({"data.max_source_tokens", "data.max_target_tokens"}, "the sources are long");
    }
    if (translates())
      return;
    set("data.samples", "blocks");
    set("data.block_tokens", 128);
    say({"data.samples", "data.block_tokens"}, "windows of the text, as long as what is learned");
  }

  bool symbols_are(const char* kind) const {
    return value_of("text.subword", std::string()) == kind;
  }

  void choose_text() {
    const bool has_pieces =
        !is_given("text.subword") || symbols_are("sentencepiece") || symbols_are("bpe");
    if (facts_.has_ids || is_given("text.bpe_codes") || is_given("text.sentencepiece_model") ||
        !has_pieces)
      return;
    set("text.subword", "sentencepiece");
    // Rare characters cost pieces of their own, and small texts have none to spare.
    const int64_t words = facts_.source_words + facts_.target_words;
    int64_t pieces = std::min(by_work_->pieces, by_data_->pieces);
    pieces = std::max(pieces, facts_.alphabet + pieces / 3);
    pieces = std::clamp<int64_t>(words / 20, 60, pieces);
    set("text.subword_size", pieces);
    say({"text.subword_size"},
        "at most ",
        by_data_->pieces,
        " for ",
        data_text(),
        " and ",
        by_work_->pieces,
        " for ",
        work_text(),
        "; the text has ",
        facts_.alphabet,
        " characters");
  }

  void choose_model() {
    int64_t dim = by_work_->dim;
    for (const char* heads : {"model.encoder.heads", "model.decoder.heads"})
      if (const auto given = value_of(heads, int64_t{1}); given > 0 && given <= dim)
        dim = std::lcm(given, dim) <= 2 * dim ? std::lcm(given, dim)
                                              : (dim + given - 1) / given * given;
    set("model.dim", dim);
    set("model.ffn_dim", dim == by_work_->dim ? by_work_->ffn_dim : 2 * dim);
    if (!translates() || !value_of("text.joined", true))
      set("model.tie", "decoder");
    say({"model.dim", "model.ffn_dim"}, "for ", work_text(), " and ", data_text());
    if (translates())
      choose_layers("model.encoder", by_work_->layers);
    choose_layers("model.decoder", translates() ? by_work_->layers : by_work_->layers + 1);
  }

  /// Kernels and reaches for the blocks that are given, or dynamic convolutions.
  void choose_layers(const std::string& side, int64_t most) {
    const auto key = [&](const char* name) { return side + "." + name; };
    const auto layers = std::clamp<int64_t>(value_of(key("layers").c_str(), most), 1, 1000);
    Json blocks = value_of(key("block").c_str(), Json("dynamicconv"));
    if (!blocks.is_array())
      blocks = Json::array({blocks});
    if (blocks.empty())
      return;
    set(key("layers").c_str(), layers);
    set(key("block").c_str(), blocks);
    int64_t heads = layers > 4 ? 8 : 4;
    while (value_of("model.dim", int64_t{0}) % heads != 0)
      heads /= 2;
    set(key("heads").c_str(), heads);
    Json kernels = Json::array();
    Json offsets = Json::array();
    Json gates = Json::array();
    for (int64_t layer = 0; layer < layers; ++layer) {
      const Json& block = blocks[blocks.size() == 1 ? 0 : layer % blocks.size()];
      const int64_t size = kKernels[std::min<int64_t>(layer, std::size(kKernels) - 1)];
      const bool convolves = block == "dynamicconv" || block == "lightconv" || block == "cnn";
      kernels.push_back(convolves ? size : 0);
      offsets.push_back(block == "talk" ? size : 0);
      gates.push_back(block == "dynamicconv" || block == "lightconv" || block == "talk");
    }
    const auto any = [](const Json& list) {
      return std::ranges::any_of(list, [](const Json& entry) { return entry != 0; });
    };
    if (any(kernels))
      set(key("kernel_sizes").c_str(), kernels);
    if (any(offsets))
      set(key("max_offsets").c_str(), offsets);
    if (std::count(gates.begin(), gates.end(), true) < layers)
      set(key("glu").c_str(), gates);
    say({key("layers").c_str(),
         key("block").c_str(),
         key("kernel_sizes").c_str(),
         key("max_offsets").c_str()},
        "for ",
        work_text());
  }

  /// Mean tokens of the longer side, roughly.
  int64_t mean_tokens() const {
    const auto longer =
        static_cast<double>(std::max(facts_.source_characters, facts_.target_characters));
    const double each = longer / static_cast<double>(facts_.samples);
    const bool are_characters = symbols_are("characters") || symbols_are("bytes");
    const double characters = facts_.has_ids || are_characters ? 1
        : symbols_are("none")                                  ? facts_.word_length()
                                                               : kCharactersOfPiece;
    const double tokens = each / characters;
    const auto most = value_of("data.max_source_tokens", int64_t{0});
    const auto mean = static_cast<int64_t>(tokens) + 1;
    return most > 0 ? std::min(mean, most) : mean;
  }

  int64_t samples_tokens() const { return facts_.samples * mean_tokens(); }

  void choose_batches() {
    constexpr int64_t kStep = 256;
    const int64_t rows =
        translates() ? kRowsOfBatch * mean_tokens() : 4 * value_of("data.block_tokens", kStep);
    // A small text wants many updates a pass more than it wants large batches.
    const int64_t share = samples_tokens() / kUpdatesOfPass / kStep * kStep;
    const int64_t fit = std::min(by_work_->max_tokens, std::max<int64_t>(share, 2 * kStep));
    const int64_t tokens =
        std::max(fit, std::min<int64_t>((rows + kStep - 1) / kStep * kStep, 4096));
    set("batching.max_tokens", tokens);
    say({"batching.max_tokens"},
        "for ",
        work_text(),
        " and ",
        data_text(),
        tokens > by_work_->max_tokens ? ", and as samples are long" : "");
  }

  /// Weights that a token passes, roughly.
  double weights() const {
    const auto dim = value_of("model.dim", 128.0);
    const auto ffn = value_of("model.ffn_dim", 256.0);
    const auto layers = [&](const char* side) { return value_of(side, 3.0); };
    const double each = 3 * dim * dim + 40 * dim + 2 * dim * ffn;
    const double decoder =
        layers("model.decoder.layers") * (each + (translates() ? 4 : 0) * dim * dim);
    const double encoder = translates() ? layers("model.encoder.layers") * each : 0;
    return encoder + decoder + dim * value_of("text.subword_size", 8000.0);
  }

  /// Updates that fit into the time, roughly.
  double updates_that_fit() const {
    const double batch = value_of("batching.max_tokens", 512.0);
    return 60 * work_ * kThreadSpeed / (6 * weights() * batch);
  }

  /// Updates that are given, or that fit into the time, roughly; 0: not known.
  double updates() const {
    const double given = value_of("training.max_updates", 0.0);
    if (minutes_ == 0)
      return given;
    return given > 0 ? std::min(given, updates_that_fit()) : updates_that_fit();
  }

  /// Updates of a pass over the text, roughly.
  double updates_a_pass() const {
    return static_cast<double>(samples_tokens()) / value_of("batching.max_tokens", 512.0);
  }

  /// Passes over the text that the run may make; 0: any number.
  double most_passes() const {
    return static_cast<double>(value_of("training.max_epochs", by_data_->epochs));
  }

  /// Updates that the time and the passes allow; 0: not known.
  double planned_updates() const {
    const double passes = most_passes();
    return passes > 0 ? std::min(updates(), passes * updates_a_pass()) : updates();
  }

  bool validates() const {
    return is_given("data.valid_source") || is_given("data.valid") ||
        value_of("data.hold_out", int64_t{0}) > 0;
  }

  void choose_dropout() {
    const double passes = updates() > 0 ? planned_updates() / updates_a_pass() : most_passes();
    const double dropout = row_of(kByPasses, &PassRow::passes, passes).dropout;
    for (const char* key : {"model.dropout", "model.input_dropout", "model.weight_dropout"})
      set(key, key == std::string_view("model.dropout") ? dropout : dropout / 2);
    say({"model.dropout"},
        "for about ",
        passes < 10 ? std::round(passes * 10) / 10 : std::round(passes),
        " passes over the text");
  }

  void choose_training() {
    set("schedule.kind", "linear");
    set("schedule.learning_rate", by_work_->learning_rate);
    // A long run rises no longer than a short one: stopped early, it has learned as much.
    const double planned = planned_updates();
    const double share = planned > 0 ? kWarmupUpdates / planned : kWarmupShare;
    if (!is_given("schedule.warmup_updates"))
      set("schedule.warmup_share", std::clamp(std::round(share * 1000) / 1000, 0.01, kWarmupShare));
    say({"schedule.kind", "schedule.learning_rate", "schedule.warmup_share"},
        is_given("schedule.kind") ? "for " + work_text()
                                  : "up at once, and down to nothing by the end");
    set("optimizer.clip_norm", 1.0);
    if (translates())
      set("training.label_smoothing", 0.1);
    set("training.ema_share", 0.05);
    say({"training.ema_share"}, "the model is an average over the last twentieth of the run");
    set("training.max_epochs", by_data_->epochs);
    say({"training.max_epochs"}, "more passes over ", data_text(), " learn them by heart");
    const double every = planned_updates() / 10;
    const double pass = updates_a_pass();
    if (validates() && every > 0 && (every < 0.7 * pass || every > 1.5 * pass)) {
      set("training.validate_every", std::max<int64_t>(static_cast<int64_t>(every) / 50 * 50, 50));
      say({"training.validate_every"}, "about ten validations");
    }
    set("training.keep_last", 1);
    if (translates() && is_long())
      set("decoding.no_repeat_ngram", 3);
    say({"decoding.no_repeat_ngram"}, "summaries repeat nothing");
  }

  const Json& given_;
  const CorpusFacts& facts_;
  RunBudget budget_;
  Task task_ = Task::kTranslation;
  double minutes_ = 0;
  double work_ = 0;
  const WorkRow* by_work_ = nullptr;
  const DataRow* by_data_ = nullptr;
  AutoSettings chosen_;
};

}  // namespace

AutoSettings choose_settings(const Json& given, const CorpusFacts& facts, const RunBudget& budget) {
  return Chooser(given, facts, budget).choose();
}

bool says_nothing_of_sizes(const Json& table) {
  for (const char* key : {"model", "batching", "schedule", "optimizer", "text.subword_size"})
    if (find_key(table, key) != nullptr)
      return false;
  return true;
}

}  // namespace seqconv::internal
