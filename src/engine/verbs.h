#pragma once

#include <iosfwd>
#include <string>

#include "seqconv/pipeline/engine.h"

/// The verbs behind EngineTable. They may throw what the layers below throw;
/// engine.cpp turns all of it into seqconv::Error.
namespace seqconv::engine {

void train(const TrainArguments& arguments);
std::string describe_config(ConfigFormat format);
void translate(
    const TranslateArguments& arguments,
    std::istream& in,
    std::ostream& out);
void score(const ScoreArguments& arguments, std::ostream& out);
void perplexity(
    const PerplexityArguments& arguments,
    std::istream& in,
    std::ostream& out);
void generate(const GenerateArguments& arguments, std::ostream& out);

/// Threads within an operation; 0 leaves LibTorch's choice, all cores.
void set_threads(int64_t threads);

}  // namespace seqconv::engine
