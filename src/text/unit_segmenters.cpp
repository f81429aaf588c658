#include <array>
#include <cstdio>
#include <unordered_map>

#include "base/made_once.h"
#include "base/utf8.h"
#include "text/segmenter.h"

namespace seqconv::internal {
namespace {

std::vector<std::string> collect(const Segmenter& segmenter, std::string_view line) {
  std::vector<std::string> symbols;
  segmenter.visit(line, [&](std::string_view symbol) { symbols.emplace_back(symbol); });
  return symbols;
}

class CharacterSegmenter : public Segmenter {
 public:
  std::vector<std::string> split(std::string_view line) const override {
    return collect(*this, line);
  }
  void visit(std::string_view line, const SymbolVisitor& take) const override {
    for (size_t position = 0; position < line.size();) {
      const size_t start = position;
      next_code_point(line, position);
      const auto character = line.substr(start, position - start);
      take(character == " " ? kBlankMark : character);
    }
  }
  std::string join(const std::vector<std::string>& symbols) const override {
    std::string text;
    for (const std::string& symbol : symbols)
      text += symbol == kBlankMark ? " " : std::string_view(symbol);
    return text;
  }
  std::string surface(const std::string& symbol) const override {
    return symbol == kBlankMark ? std::string() : symbol;
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
    return collect(*this, line);
  }
  void visit(std::string_view line, const SymbolVisitor& take) const override {
    for (char byte : line)
      take(byte_symbols()[static_cast<unsigned char>(byte)]);
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
  std::vector<std::string> required() const override { return byte_symbols(); }
  std::string surface(const std::string& symbol) const override { return join({symbol}); }
  Subword kind() const override { return Subword::kBytes; }
  std::string model() const override { return {}; }

 private:
  std::unordered_map<std::string_view, char> bytes_;  // of byte_symbols()
};

}  // namespace

const std::vector<std::string>& byte_symbols() {
  static MadeOnce<std::vector<std::string>> made;
  return made.get([] {
    std::vector<std::string> symbols;
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::array<char, 8> text{};
      std::snprintf(text.data(), text.size(), "<0x%02X>", byte);
      symbols.emplace_back(text.data());
    }
    return symbols;
  });
}

std::shared_ptr<const Segmenter> make_character_segmenter() {
  return std::make_shared<CharacterSegmenter>();
}

std::shared_ptr<const Segmenter> make_byte_segmenter() {
  return std::make_shared<ByteSegmenter>();
}

}  // namespace seqconv::internal
