#include <array>
#include <cstdio>
#include <unordered_map>

#include "seqconv/text/segmenter.h"
#include "seqconv/text/unicode.h"

namespace seqconv {
namespace {

constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581

class CharacterSegmenter : public Segmenter {
 public:
  std::vector<std::string> split(std::string_view line) const override {
    std::vector<std::string> symbols;
    for (std::string_view character : split_characters(line))
      symbols.emplace_back(character == " " ? kBlank : character);
    return symbols;
  }
  std::string join(const std::vector<std::string>& symbols) const override {
    std::string text;
    for (const std::string& symbol : symbols)
      text += symbol == kBlank ? " " : std::string_view(symbol);
    return text;
  }
  Subword kind() const override { return Subword::kCharacters; }
  std::string model() const override { return {}; }
};

class ByteSegmenter : public Segmenter {
 public:
  ByteSegmenter() {
    for (const std::string& symbol : byte_symbols())
      bytes_.emplace(symbol, static_cast<char>(bytes_.size()));
  }
  std::vector<std::string> split(std::string_view line) const override {
    std::vector<std::string> symbols;
    symbols.reserve(line.size());
    for (char byte : line)
      symbols.push_back(byte_symbols()[static_cast<unsigned char>(byte)]);
    return symbols;
  }
  std::string join(const std::vector<std::string>& symbols) const override {
    std::string text;
    for (const std::string& symbol : symbols) {
      const auto byte = bytes_.find(symbol);
      if (byte == bytes_.end())
        text += symbol;
      else
        text += byte->second;
    }
    return text;
  }
  Subword kind() const override { return Subword::kBytes; }
  std::string model() const override { return {}; }

 private:
  std::unordered_map<std::string_view, char> bytes_;  // of byte_symbols()
};

}  // namespace

const std::vector<std::string>& byte_symbols() {
  static const std::vector<std::string> kSymbols = [] {
    std::vector<std::string> symbols;
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::array<char, 8> text{};
      std::snprintf(text.data(), text.size(), "<0x%02X>", byte);
      symbols.emplace_back(text.data());
    }
    return symbols;
  }();
  return kSymbols;
}

std::shared_ptr<const Segmenter> make_character_segmenter() {
  return std::make_shared<CharacterSegmenter>();
}

std::shared_ptr<const Segmenter> make_byte_segmenter() {
  return std::make_shared<ByteSegmenter>();
}

}  // namespace seqconv
