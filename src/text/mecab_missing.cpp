#include "base/error.h"
#include "text/mecab.h"

// Stands for mecab.cpp in a build without SEQCONV_MECAB.
namespace seqconv::internal {

bool has_mecab() {
  return false;
}

MecabTokenizer::MecabTokenizer(const std::filesystem::path& /*dictionary*/) {
  fail_usage("ja-mecab needs a build with MeCab (Debian's libmecab-dev, cmake -DSEQCONV_MECAB=ON), "
             "but this one is without; char and spm suit Japanese, too");
}

std::vector<std::string> MecabTokenizer::split(std::string_view /*line*/) const {
  return {};
}

}  // namespace seqconv::internal
