#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>

#include "base/error.h"
#include "base/files_under_way.h"
#include "base/log.h"
#include "base/mapping_faults.h"
#include "base/signals.h"
#include "cli/flags.h"
#include "cli/help.h"
#include "cli/overwriting.h"
#include "cli/parse_errors.h"
#include "cli/program.h"
#include "cli/standard_output.h"
#include "cli/version.h"

namespace seqconv::internal::cli {

CLI::App& Program::add_verb(
    const std::string& name, const std::string& summary, const std::string& examples) {
  CLI::App* verb = app.add_subcommand(name, summary);
  verb->footer(examples);
  verb->fallthrough();
  return *verb;
}

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

// Every verb, in the order of the help.
constexpr void (*kVerbs[])(Program&) = {
    add_train,
    add_translate,
    add_summarise,
    add_score,
    add_perplexity,
    add_generate,
    add_serve,
    add_evaluate,
    add_average,
    add_shortlist,
    add_tokenize,
    add_bpe,
    add_import,
    add_export,
    add_quantize,
    add_text,
    add_info,
    add_inspect,
    add_reference};

constexpr const char* kExamples =
    "Examples:\n"
    "  seqconv train configs/demo_numbers.toml --output runs/numbers\n"
    "  seqconv translate --model runs/numbers < input.txt > output.txt\n"
    "  seqconv perplexity --model runs/lm < test.txt\n"
    "  seqconv generate --model runs/lm --prompt 'The house'\n"
    "  seqconv evaluate bleu --reference reference.txt < output.txt\n"
    "  seqconv VERB --help\n"
    "\n"
    "Data goes to standard output, everything else to standard error.\n"
    "Exit codes: 0 done, 1 failed, 2 wrong command line or configuration,\n"
    "129, 130, 138 and 143 stopped by SIGHUP, SIGINT, SIGUSR1 and SIGTERM.";

extern "C" void leave_on_signal(int signal) {
  remove_files_under_way();
  ::_exit(128 + signal);
}

// Handles the signals that others send to end a program. Training has handlers
// of its own for four of these, which save.
void prepare_signals() {
  report_mapping_faults();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU})
    handle_signal(signal, leave_on_signal);
}

int report(const std::string& message, int code) {
  log_line(LogLevel::kError, message);
  return code;
}

// Where it has been deleted, no relative path leads anywhere, and LibTorch's
// mathematics library ends the program with a message of its own.
void check_working_folder() {
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  if (error)
    fail_usage(
        "the working folder cannot be found (", error.message(), "); change into one that exists");
}

int run(int argc, char** argv, StandardOutput& out) {
  remember_command_line(argc, argv);
  CLI::App app(
      "Trains and runs attention-free translation and language models:\n"
      "LightConv, DynamicConv, TaLK convolutions (and self-attention to compare).",
      "seqconv");
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(36);
  app.footer(kExamples);
  app.require_subcommand(0, 1);
  bool quiet = false;
  app.add_flag("-q,--quiet", quiet, "Only warnings and errors");
  app.set_version_flag("--version", version_text, "Version and build");

  Program program{app, out, {}};
  for (const auto add : kVerbs)
    add(program);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    out << app.help() << '\n';
    return EXIT_SUCCESS;
  } catch (const CLI::CallForVersion& version) {
    out << version.what() << '\n';
    return EXIT_SUCCESS;
  } catch (const CLI::ParseError& error) {
    reject_command_line(app, error);
  }
  if (!program.run) {
    std::cerr << app.help();
    return kUsage;
  }
  reject_bad_values(app);
  set_log_level(quiet ? LogLevel::kWarning : LogLevel::kInfo);
  check_working_folder();
  check_overwriting(app);
  program.run();
  return EXIT_SUCCESS;
}

// The one place that turns exceptions into exit codes.
int guarded(int argc, char** argv) {
  try {
    StandardOutput out;
    const int code = run(argc, argv, out);
    out.flush();
    return code;
  } catch (const OutputClosed&) {
    return EXIT_SUCCESS;
  } catch (const Error& error) {
    log_end(error);
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& error) {
    return report(
        concat("cannot use '", error.path1().string(), "': ", error.code().message()), kFailure);
  } catch (const std::bad_alloc&) {
    return report("out of memory", kFailure);
  } catch (const std::exception& error) {
    return report(concat("internal error: ", error.what()), kFailure);
  } catch (...) {
    return report("internal error of an unknown kind", kFailure);
  }
}

}  // namespace
}  // namespace seqconv::internal::cli

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);  // one thread may read while another writes
  seqconv::internal::cli::prepare_signals();
  const int code = seqconv::internal::cli::guarded(argc, argv);
  // Everything is written and closed: no need to wait for the tensor library
  // to take itself down.
  ::_exit(code);
}
