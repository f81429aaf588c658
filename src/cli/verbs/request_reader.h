#pragma once

#include <cstdint>
#include <exception>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "base/json_members.h"
#include "pipeline/translator.h"
#include "text/corpus/sentence_reader.h"
#include "text/text_pipeline.h"

namespace seqconv::internal::verbs {

/// A line of the input beside what is translated of it.
struct RequestOrigin {
  /// What came in: an object's members, or "text" alone.
  std::vector<JsonMember> members;
  /// Where the line is: "file:line" or "file: sentence number".
  std::string where;
  int64_t number = 0;  ///< of the line
  /// Where the line is and why it cannot be translated; "": it can.
  std::string error;
  bool several = false;  ///< it asks for several results
};

/// What the lines of an input are.
struct InputFormat {
  TextFormat format = TextFormat::kText;
  /// JSON: names what is translated. "": "text", which is one line; a document
  /// may have several, or be a list of them.
  std::string document_key{};
  std::vector<std::string> stories{};  ///< folders of story files
  Links links = Links::kInside;        ///< of those folders
  bool summaries = false;              ///< line ends of a prefix stand between sentences
};

/// The translation of lines whose requests say nothing else.
struct RequestOptions {
  DecodingOptions search;
  std::optional<SamplingOptions> sampling{};  ///< drawn, where given
  Alignments alignments = Alignments::kNone;
  bool has_terms = false;  ///< texts are looked through for terms
};

/// Translation requests, a buffer at a time, from a file or a stream: plain
/// lines, JSON objects, names of stories, or the ids of fairseq's binarised
/// data. Invalid UTF-8 becomes U+FFFD, NUL a blank, but not in stories.
class RequestReader {
 public:
  struct Buffer {
    std::vector<TranslationInput> requests;  ///< empty where a line failed
    std::vector<RequestOrigin> origins;      ///< one a request
  };

  /// Reads the file `input`, or `in` when it is "". `text` is of the model's source side and
  /// must outlive the reader. UsageError for anything else than text in binarised
  /// data.
  RequestReader(
      const std::string& input,
      std::istream& in,
      InputFormat format,
      const RequestOptions& all,
      const TextPipeline& text);

  /// Reads plain lines, objects or names from a stream that is a piece of a
  /// file: `name` is the file's, for messages, and `lines_before` the number of
  /// its lines in front. Stream and `text` must outlive the reader.
  RequestReader(
      std::istream& piece,
      const std::string& name,
      int64_t lines_before,
      InputFormat format,
      const RequestOptions& all,
      const TextPipeline& text);

  /// Up to `count` requests, none for blank lines between JSON objects; false
  /// when there are none left. Error when the
  /// input cannot be read on, once what came before it has been given out.
  bool read(int64_t count, Buffer& buffer);

  /// Sentences read so far, and those in front of a piece.
  int64_t count() const { return sentences_->count(); }
  /// Blank lines between JSON objects so far.
  int64_t blank_lines() const { return blank_lines_; }
  /// Lines that held invalid UTF-8 or NUL so far.
  int64_t replaced_lines() const { return sentences_->replaced_lines(); }

 private:
  void add_sentence(Buffer& buffer) const;
  void read_line(TranslationInput& request, RequestOrigin& origin) const;
  void read_object(TranslationInput& request, RequestOrigin& origin) const;
  void read_named_story(TranslationInput& request, RequestOrigin& origin) const;
  void keep_text(const std::string& text, TranslationInput& request) const;
  std::string read_prefix(const RequestOrigin& origin) const;
  std::vector<Term> read_terms(const RequestOrigin& origin) const;
  bool is_document(const std::string& name) const;
  std::vector<int32_t> encode(const std::string& text) const;

  std::optional<SentenceReader> sentences_;
  RequestOptions all_;
  const TextPipeline& text_;
  InputFormat format_;
  int64_t blank_lines_ = 0;
  std::exception_ptr failure_;  // of reading, to be thrown by the next read
};

}  // namespace seqconv::internal::verbs
