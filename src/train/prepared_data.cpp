#include "prepared_data.h"

#include "seqconv/base/files.h"
#include "seqconv/base/log.h"
#include "seqconv/base/signals.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

struct ReportFields {
  CorpusReport& report;

  template <class Visitor>
  void visit(Visitor& v) {
    v("lines", report.lines, "");
    v("pairs", report.pairs, "");
    v("empty", report.empty, "");
    v("too_long", report.too_long, "");
    v("source_tokens", report.source_tokens, "");
    v("target_tokens", report.target_tokens, "");
  }
};

Json write_report(CorpusReport report) {
  return write_options(ReportFields{report});
}

CorpusReport read_report(const Json& table) {
  CorpusReport report;
  ReportFields fields{report};
  read_options(table, "report", fields);
  return report;
}

/// Encodes lines and stops between two of them when asked to.
LineEncoder encoder_of(std::shared_ptr<const TextPipeline> pipeline) {
  return [pipeline](std::string_view line) {
    if (const int signal = stop_signal())
      throw Interrupted(
          signal,
          "interrupted while the data were being prepared; nothing was "
          "trained yet, start the same command again");
    return pipeline->encode(line);
  };
}

CorpusReport write_corpus(
    const std::vector<std::string>& source,
    const std::vector<std::string>& target,
    const TrainConfig& config,
    const TranslationText& text,
    const fs::path& stem) {
  return write_pair_corpus(
      source,
      target,
      encoder_of(text.source),
      encoder_of(text.target),
      config.model.max_positions,
      stem);
}

/// The stamp of earlier work, or null when there is none to be used.
Json read_stamp(const fs::path& file, const Json& inputs) {
  if (!fs::exists(file))
    return {};
  try {
    const Json stamp = Json::parse(read_file(file));
    if (stamp.is_object() && stamp.value("inputs", Json()) == inputs)
      return stamp;
  } catch (const Json::exception&) {
    log_warning(file.string(), " is damaged; the data are encoded again");
  }
  return {};
}

PreparedData open_data(const fs::path& folder, const Json& stamp) {
  PreparedData data;
  data.train = open_pair_corpus(folder / "train");
  data.train_report = read_report(stamp.at("train"));
  if (stamp.contains("valid")) {
    data.valid = open_pair_corpus(folder / "valid");
    data.valid_report = read_report(stamp.at("valid"));
  }
  return data;
}

Json write_data(
    const fs::path& folder,
    const TrainConfig& config,
    const TranslationText& text,
    const Json& inputs) {
  create_folder(folder);
  const DataOptions& files = config.data;
  Json stamp = {{"inputs", inputs}};
  stamp["train"] = write_report(write_corpus(
      files.train_source,
      files.train_target,
      config,
      text,
      folder / "train"));
  if (!files.valid_source.empty())
    stamp["valid"] = write_report(write_corpus(
        files.valid_source,
        files.valid_target,
        config,
        text,
        folder / "valid"));
  write_file_atomically(folder / "stamp.json", stamp.dump(2) + "\n");
  return stamp;
}

}  // namespace

PreparedData prepare_data(
    const fs::path& folder,
    const TrainConfig& config,
    const TranslationText& text,
    const Json& inputs) {
  const Json stamp = read_stamp(folder / "stamp.json", inputs);
  if (!stamp.is_null()) {
    try {
      return open_data(folder, stamp);
    } catch (const Error& error) {
      log_warning(error.what(), "; the data are encoded again");
    } catch (const Json::exception& error) {
      log_warning(error.what(), "; the data are encoded again");
    }
  }
  return open_data(folder, write_data(folder, config, text, inputs));
}

void check_same_inputs(const Json& stored, const Json& present) {
  for (const auto& [key, value] : present.items()) {
    const Json before = stored.value(key, Json());
    if (before == value)
      continue;
    if (key == "text")
      fail("cannot resume: the model folder's text files have changed");
    fail_usage(
        "cannot resume: the content of data.",
        key,
        " is not what the run began with");
  }
}

}  // namespace seqconv
