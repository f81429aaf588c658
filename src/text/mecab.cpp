#include "text/mecab.h"

#include <mecab.h>

#include <iterator>

#include "base/error.h"

namespace seqconv::internal {
namespace {

constexpr unsigned int kWordsOfIpadic = 392126;

}  // namespace

/// Shared by all threads; what a sentence needs is a lattice of its own.
class MecabTokenizer::Dictionary {
 public:
  explicit Dictionary(const std::string& folder) {
    // Without an own file of settings MeCab wants one of the system.
    const char* const arguments[] = {"seqconv", "-r", "/dev/null", "-d", folder.c_str()};
    model_.reset(
        MeCab::createModel(static_cast<int>(std::size(arguments)), const_cast<char**>(arguments)));
    if (model_)
      tagger_.reset(model_->createTagger());
    SEQCONV_CHECK(
        tagger_ != nullptr,
        folder,
        ": a folder with a dictionary of MeCab was wanted, but: ",
        MeCab::getLastError());
    const std::string charset = info().charset;
    SEQCONV_CHECK(
        charset == "UTF-8" || charset == "utf-8" || charset == "utf8",
        folder,
        ": a dictionary of UTF-8 was wanted, but it is of ",
        charset);
  }

  const MeCab::DictionaryInfo& info() const { return *model_->dictionary_info(); }

  std::vector<std::string> split(std::string_view line) const {
    const std::unique_ptr<MeCab::Lattice> lattice(model_->createLattice());
    lattice->set_sentence(line.data(), line.size());
    SEQCONV_CHECK(tagger_->parse(lattice.get()), "MeCab cannot split a line: ", lattice->what());
    std::vector<std::string> words;
    for (const MeCab::Node* node = lattice->bos_node(); node != nullptr; node = node->next)
      if (node->stat != MECAB_BOS_NODE && node->stat != MECAB_EOS_NODE)
        words.emplace_back(node->surface, node->length);
    return words;
  }

 private:
  std::unique_ptr<MeCab::Model> model_;
  std::unique_ptr<const MeCab::Tagger> tagger_;
};

bool has_mecab() {
  return true;
}

MecabTokenizer::MecabTokenizer(const std::filesystem::path& dictionary)
    : dictionary_(std::make_shared<Dictionary>(dictionary.string())) {
  const unsigned int words = dictionary_->info().size;
  name_ =
      concat(MeCab::Model::version(), "-", words == kWordsOfIpadic ? "IPA" : std::to_string(words));
}

std::vector<std::string> MecabTokenizer::split(std::string_view line) const {
  return dictionary_->split(line);
}

}  // namespace seqconv::internal
