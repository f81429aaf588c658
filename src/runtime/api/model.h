#pragma once

#include <optional>

#include "runtime/api/request_queue.h"

/// An opened model: a system of one task, and what answers requests to it.
struct seqconv_model {
  /// Errors of open_translation and open_language_model, CallError for another task.
  seqconv_model(const std::vector<std::string>& folders, const seqconv_runtime_options& given);

  /// Answers calls that wait.
  const seqconv::internal::Answerer& answerer() const { return together_; }
  seqconv::internal::RequestQueue& queue() const { return *queue_; }
  const seqconv_model_info& info() const { return info_; }
  /// CallError unless the model is of this task; `call` names what wants it.
  void require(seqconv_task task, const char* call) const;
  /// The text of a side; CallError where there is none.
  const seqconv::internal::TextPipeline& text(int32_t side) const;

 private:
  void open_translation(const seqconv::RuntimeOptions& options);
  void open_language_model(const seqconv::RuntimeOptions& options);

  std::vector<seqconv::internal::RootedPath> folders_;
  std::optional<seqconv::internal::TranslationSystem> translation_;
  std::optional<seqconv::internal::LanguageSystem> language_;
  std::optional<seqconv::internal::Translator> translator_;
  std::optional<seqconv::internal::Translator> alone_;  // of one worker, for the queue's threads
  seqconv::internal::Answerer together_;
  seqconv_search_options search_{};
  std::string compute_;
  seqconv_model_info info_{};
  std::unique_ptr<seqconv::internal::RequestQueue> queue_;  // ends before what it uses
};
