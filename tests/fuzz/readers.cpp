#include "fuzz/readers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/characters.h"
#include "base/checksum.h"
#include "base/json_texts.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "base/utf8.h"
#include "cli/report/charts.h"
#include "cli/verbs/request_reader.h"
#include "model/model_description.h"
#include "pipeline/shortlist.h"
#include "serve/answers.h"
#include "serve/translate_call.h"
#include "text/bpe.h"
#include "text/corpus/fairseq_data.h"
#include "text/documents.h"
#include "text/line_reader.h"
#include "text/markup/html.h"
#include "text/moses.h"
#include "text/packed_text.h"
#include "text/segmenter.h"
#include "text/sentences.h"
#include "train/saved_state.h"

namespace seqconv::internal::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDictionary = "ein 5\nzwei 4\ndrei@@ 3\n\xC3\xBC 2\n";
constexpr std::string_view kCodes = "#version: 0.2\ne i\nei n</w>\nd r\n";

fs::path file_of(std::string_view bytes) {
  const fs::path file = scratch() / "input";
  write_bytes(file, bytes);
  return file;
}

bool is_utf8(std::string_view text) {
  return find_invalid_utf8(text) == std::string_view::npos;
}

/// Words of a vocabulary that every target shares.
const TextPipeline& words() {
  static const TextPipeline kWords(
      make_word_segmenter(),
      std::make_shared<Vocabulary>(Vocabulary::parse(std::string(kDictionary), "dict.txt")));
  return kWords;
}

void read_safetensors(std::string_view bytes) {
  const SafetensorsReader reader(file_of(bytes));
  for (const auto& [name, view] : reader.tensors()) {
    require(
        view.data.size() == static_cast<size_t>(view.count()) * element_size(view.type),
        "a tensor has the bytes of its shape");
    checksum(view.data);
  }
}

/// config.json of a folder with good files of text.
void read_model_folder(std::string_view bytes) {
  static const fs::path kFolder = [] {
    const fs::path folder = scratch() / "model";
    fs::create_directory(folder);
    for (const char* prefix : {"", "source.", "target."}) {
      write_bytes(folder / concat(prefix, "dict.txt"), kDictionary);
      write_bytes(folder / concat(prefix, "bpe.codes"), kCodes);
    }
    return folder;
  }();
  write_bytes(kFolder / "config.json", bytes);
  const ModelFiles files = find_model(kFolder);
  switch (task_of_model(files.folder)) {
    case Task::kTranslation:
      read_translation_description(files.folder);
      break;
    case Task::kLanguageModel:
      read_language_description(files.folder);
      break;
  }
}

void read_configuration(std::string_view bytes) {
  const Json table = load_toml(file_of(bytes));
  const std::string text = to_toml(table);
  require(to_toml(load_toml(file_of(text))) == text, "TOML that was written is read as it was");
  ModelOptions model;
  if (table.contains("model"))
    read_options(table["model"], "model", model);
  TextOptions options;
  if (table.contains("text"))
    read_options(table["text"], "text", options);
  DecodingOptions search;
  if (table.contains("decoding"))
    read_options(table["decoding"], "decoding", search);
  search.validate("decoding");
  options.validate();
  model.validate("model");
}

void read_dictionary(std::string_view bytes) {
  const Vocabulary read = Vocabulary::parse(std::string(bytes), "dict.txt");
  const Vocabulary again = Vocabulary::parse(read.to_text(), "again");
  require(
      read.symbols() == again.symbols() && read.padding() == again.padding(),
      "a dictionary that was written is read as it was");
}

void read_codes(std::string_view bytes) {
  const auto segmenter = make_bpe_segmenter(Bpe::parse(bytes, "codes"));
  const std::string line(bytes.substr(0, 200));
  for (const std::string& text : {std::string("ein zweiter dreier"), replace_invalid_utf8(line)})
    segmenter->join(segmenter->split(clean_line(text)));
}

void read_pieces(std::string_view bytes) {
  const auto segmenter = make_sentencepiece_segmenter(std::string(bytes), "model");
  segmenter->required();
  segmenter->join(segmenter->split("ein zweiter \xC3\xBC"));
}

/// The index is as long as the first two bytes say; then come the ids.
void read_binarised(std::string_view bytes) {
  if (bytes.size() < 2)
    return;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const size_t wanted = byte(0) + size_t{256} * byte(1);
  bytes.remove_prefix(2);
  const size_t index = std::min(wanted, bytes.size());
  write_bytes(scratch() / "data.idx", bytes.substr(0, index));
  write_bytes(scratch() / "data.bin", bytes.substr(index));
  const auto source = open_fairseq_data(scratch() / "data.bin", 100);
  for (int64_t i = 0; i < source->size(); ++i) {
    try {
      for (const int32_t id : source->tokens(i))
        require(id >= 0 && id < 100, "ids are those of the dictionary");
    } catch (const Error&) {}
  }
}

/// A safetensors file with some metadata changed, and the checksum that states
/// and shortlists must have: nobody guesses it.
fs::path with_checksum(std::string_view bytes, const std::map<std::string, std::string>& changed) {
  const SafetensorsReader reader(file_of(bytes));
  std::map<std::string, std::string> metadata = changed;
  metadata.insert(reader.metadata().begin(), reader.metadata().end());
  metadata["checksum"] = state_checksum(reader.tensors(), metadata);
  fs::path file = scratch() / "sound";
  write_safetensors(file, reader.tensors(), metadata);
  return file;
}

void read_training_state(std::string_view bytes) {
  require(read_state(with_checksum(bytes, {})).position.update >= 0, "a state is of some update");
}

void read_metrics(std::string_view bytes) {
  const report::Run run = report::read_run(file_of(bytes), "run");
  for (const report::Chart& chart : report::training_charts({run}))
    report::svg_file(chart);
}

/// As documents under a key where the first byte is odd.
void read_requests(std::string_view bytes) {
  const bool documents = !bytes.empty() && bytes[0] % 2 != 0;
  std::istringstream lines(std::string(bytes.substr(!bytes.empty())));
  verbs::InputFormat format{TextFormat::kJson};
  if (documents)
    format.document_key = "in.text";
  verbs::RequestReader reader("", lines, format, verbs::RequestOptions(), words());
  verbs::RequestReader::Buffer buffer;
  while (reader.read(16, buffer))
    for (const verbs::RequestOrigin& origin : buffer.origins) {
      require(!is_librarys(origin.error, bytes), "errors are in words of our own");
      for (const JsonMember& member : origin.members)
        parse_json(member.key, "a key that came in");
    }
}

void read_story_file(std::string_view bytes) {
  const Story story = read_story(file_of(bytes));
  require(is_utf8(story.article), "an article is UTF-8");
  sentence_lines(summary_line(story.highlights));
}

/// Has one byte at a time, as a slow pipe.
class SlowBytes : public std::streambuf {
 public:
  explicit SlowBytes(std::string_view bytes) : bytes_(bytes) {}

 protected:
  int_type underflow() override {
    if (bytes_.empty())
      return traits_type::eof();
    byte_ = bytes_.front();
    bytes_.remove_prefix(1);
    setg(&byte_, &byte_, &byte_ + 1);
    return traits_type::to_int_type(byte_);
  }

 private:
  std::string_view bytes_;
  char byte_ = '\0';
};

/// The beginning of a text: a few bytes may unpack to very many.
std::string unpacked(std::streambuf& bytes) {
  constexpr size_t kMost = size_t{1} << 20;
  std::istream in(&bytes);
  PackedText packed(in, "packed");
  std::string text;
  for (auto block = packed.next_block(); !block.empty() && text.size() < kMost;
       block = packed.next_block())
    text += block;
  return text.substr(0, kMost);
}

void read_packed(std::string_view bytes) {
  std::stringbuf whole{std::string(bytes)};
  const std::string text = unpacked(whole);
  SlowBytes slow(bytes);
  require(unpacked(slow) == text, "a slow pipe brings the text of a file");
}

/// One of the words that all targets share.
void read_shortlist(std::string_view bytes) {
  TranslationText text;
  text.source = text.target = std::make_shared<const TextPipeline>(words());
  uint64_t sum = 0;
  for (const std::string& symbol : words().vocabulary().symbols())
    sum = checksum(std::as_bytes(std::span(symbol)), sum);
  const std::string side =
      concat(words().vocabulary().size(), " symbols, checksum ", checksum_text(sum));
  const Shortlist list = Shortlist::load(
      with_checksum(
          bytes,
          {{"format", "seqconv-shortlist-1"},
           {"source_vocabulary", side},
           {"target_vocabulary", side}}),
      text);
  for (int32_t source = 0; source < words().vocabulary().size(); ++source)
    for (const int32_t word : list.words(std::vector{source}))
      require(word >= 0 && word < words().vocabulary().size(), "words are those of the dictionary");
}

void read_utf8(std::string_view bytes) {
  const std::string text = replace_invalid_utf8(bytes);
  require(is_utf8(text), "what was replaced is UTF-8");
  require(replace_invalid_utf8(text) == text, "UTF-8 stays as it is");
  require(!is_utf8(bytes) || text == bytes, "UTF-8 stays as it is");
  std::string joined, lines;
  for (const std::string_view character : split_characters(text))
    joined += character;
  for (const std::string_view line : split_lines(text))
    lines += line;
  require(joined == text, "characters are all of a text");
  require(lines == text, "lines are all of a text");
  require(is_utf8(to_lower(text)), "small letters are UTF-8");
  require(is_utf8(clean_line(text)), "a clean line is UTF-8");
  size_t at = 0;
  for (size_t before = 0; at < bytes.size(); before = at) {
    next_code_point(bytes, at);
    require(at > before && at <= bytes.size(), "a code point has bytes");
  }
}

/// The first byte chooses language and options.
void read_tokens(std::string_view bytes) {
  static constexpr const char* kLanguages[] = {
      "en", "de", "fr", "it", "zh", "ja", "ko", "fi", "cs"};
  const auto first = bytes.empty() ? 0U : static_cast<uint8_t>(bytes[0]);
  bytes.remove_prefix(bytes.empty() ? 0 : 1);
  const std::string language = kLanguages[(first >> 2) % 9];
  const MosesTokenizer tokenizer(
      language, {.escape = (first & 1) != 0, .split_dashes = (first & 2) != 0});
  const std::string tokens = tokenizer.tokenize(bytes);
  require(is_utf8(tokens), "tokens are UTF-8");
  const MosesDetokenizer detokenizer(language);
  require(is_utf8(detokenizer.detokenize(tokens)), "their text is UTF-8");
  detokenizer.detokenize(replace_invalid_utf8(bytes));
}

/// As a document that is translated into itself.
void read_document(std::string_view bytes) {
  const std::string text = replace_invalid_utf8(bytes);
  const HtmlText html(text);
  std::vector<RunTranslation> same, upper;
  for (const std::string_view run : html.texts()) {
    require(!run.empty() && is_utf8(run), "runs are text");
    same.push_back({std::string(run), {}});
    upper.push_back({"<b>&amp; \"'", {}});
  }
  require(is_utf8(html.with(same)), "a document is UTF-8");
  const std::string escaped = html.with(upper);
  const HtmlText again(escaped);
  require(
      is_utf8(again.with(std::vector<RunTranslation>(again.texts().size()))),
      "a translated document is a document");
}

void read_sentences(std::string_view bytes) {
  for (const char* language : {"", "de", "ja"}) {
    std::string joined;
    for (const std::string_view sentence : split_sentences(bytes, language)) {
      require(!sentence.empty(), "a sentence has bytes");
      joined += sentence;
    }
    require(joined == bytes, "sentences are all of a text");
  }
}

/// The first byte chooses the type of the body.
void read_http_request(std::string_view bytes) {
  static constexpr const char* kTypes[] = {
      "application/json",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=b",
      "text/plain"};
  HttpRequest request;
  request.content_type = kTypes[bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]) % 4];
  request.body = bytes.substr(std::min<size_t>(1, bytes.size()));
  request.query = request.body;
  try {
    const Json parameters = read_parameters(request);
    for (const std::string& text : read_translate_call(parameters, {}).texts)
      require(is_utf8(text), "texts are UTF-8");
    read_generate_call(parameters, {});
  } catch (const CallError& error) {
    require(error.status() == 400 || error.status() == 415, "a bad request is told as one");
    require(!error_answer(error.status(), error.what()).body.empty(), "an answer says why");
  }
}

constexpr Reader kReaders[] = {
    {"safetensors", read_safetensors},
    {"config", read_model_folder},
    {"toml", read_configuration},
    {"dictionary", read_dictionary},
    {"codes", read_codes},
    {"pieces", read_pieces},
    {"binarised", read_binarised},
    {"state", read_training_state},
    {"metrics", read_metrics},
    {"requests", read_requests},
    {"story", read_story_file},
    {"packed", read_packed},
    {"shortlist", read_shortlist},
    {"utf8", read_utf8},
    {"moses", read_tokens},
    {"html", read_document},
    {"sentences", read_sentences},
    {"call", read_http_request},
};

}  // namespace

std::span<const Reader> readers() {
  return kReaders;
}

void write_bytes(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

const std::filesystem::path& scratch() {
  static const std::filesystem::path kFolder = [] {
    std::error_code none;
    // In memory, where there is such a place.
    const bool shared = std::filesystem::is_directory("/dev/shm", none);
    std::string name =
        (shared ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
        "seqconv-fuzz-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error(concat("cannot make a folder ", name));
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(scratch(), ignored);
    });
    return std::filesystem::path(name);
  }();
  return kFolder;
}

bool is_librarys(std::string_view message, std::string_view input) {
  constexpr std::string_view kName = "json.exception";
  return message.find(kName) != message.npos && input.find(kName) == input.npos;
}

void require(bool fulfilled, const char* what) {
  if (!fulfilled)
    throw std::logic_error(concat("does not hold: ", what));
}

}  // namespace seqconv::internal::fuzz
