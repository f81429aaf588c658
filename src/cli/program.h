#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <ostream>
#include <string>

namespace seqconv::internal::cli {

/// What the verbs share. A verb adds its flags to `app` and leaves its work in
/// `run`, which main() calls once the whole command line has been read.
struct Program {
  CLI::App& app;
  std::ostream& out;  ///< standard output
  std::function<void()> run;

  /// A subcommand; `examples` is shown at the end of its help.
  CLI::App& add_verb(
      const std::string& name, const std::string& summary, const std::string& examples);
};

void add_train(Program& program);
void add_translate(Program& program);
void add_summarise(Program& program);
void add_score(Program& program);
void add_shortlist(Program& program);
void add_perplexity(Program& program);
void add_generate(Program& program);
void add_serve(Program& program);
void add_evaluate(Program& program);
void add_average(Program& program);
void add_tokenize(Program& program);
void add_bpe(Program& program);
void add_import(Program& program);
void add_export(Program& program);
void add_quantize(Program& program);
void add_text(Program& program);
void add_info(Program& program);
void add_inspect(Program& program);
void add_reference(Program& program);

}  // namespace seqconv::internal::cli
