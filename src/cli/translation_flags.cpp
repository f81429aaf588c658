#include "cli/translation_flags.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>

#include "base/launch.h"
#include "base/threads.h"
#include "search/sampled_search.h"
#include "text/packed_text.h"

namespace seqconv::internal::cli {
namespace {

/// What is wrong whatever the model's own settings are: they may have a wider
/// beam than the default, which n-best lists must fit into, and other lengths.
void check_search(const TranslateArguments& arguments) {
  DecodingOptions search = arguments.search;
  const auto given = [&](const char* key) {
    return std::ranges::count(arguments.search_given, key) > 0;
  };
  if (!given("beam") || arguments.sampling)
    search.beam = std::clamp(search.n_best, search.beam, kMaxBeam);
  if (!given("min_length") || !given("max_length_b"))
    return search.check_values(arguments.names);
  search.validate(arguments.names);
}

/// What is asked for of draws, where translations are drawn.
void read_sampling(TranslateFlags& flags) {
  TranslateArguments& arguments = flags.arguments;
  arguments.ban_unknown = flags.sampling_options.ban_unknown;
  validate(flags.sampling_options, arguments.names);
  if (flags.sample) {
    refuse_beside_draws(arguments.given_search(), arguments.names);
    arguments.sampling = flags.sampling_options;
    return;
  }
  std::vector<std::string> given = flags.sampling->given();
  if (flags.seed->count() > 0)
    given.emplace_back("seed");
  refuse_without_draws(given, arguments.names, "--sample");
}

/// The flags of search and sampling, by their keys.
OptionNames names_of(const TranslateFlags& flags) {
  std::map<std::string, std::string> names = {{"seed", "--seed"}};
  names.merge(flags.search->names());
  names.merge(flags.sampling->names());
  return OptionNames(std::move(names));
}

void add_shortlist_flag(CLI::App& verb, TranslateFlags& flags) {
  flags.shortlist =
      verb.add_option(
              "--shortlist",
              flags.arguments.shortlist,
              R"(Choose among the words that it lists for a sentence: see seqconv shortlist)")
          ->type_name("FILE")
          ->group("Speed and memory");
}

/// Heeds or refuses the flags of the runtime alone.
void check_runtime_flags(const TranslateFlags& flags) {
  for (const CLI::Option* option : {flags.shortlist, flags.logits_memory})
    if (option->count() > 0 && is_libtorch(flags.backend))
      fail_usage(
          option->get_name(),
          " is for --backend runtime alone, but ",
          flags.backend.kind == BackendKind::kLibTorch ? "--backend libtorch"
                                                       : "--device " + flags.backend.device,
          " was given");
}

void add_search_flags(CLI::App& verb, TranslateFlags& flags) {
  TranslateArguments& arguments = flags.arguments;
  // A model may have it of its own, so that it can be switched off too.
  flags.search = std::make_unique<FlagVisitor>(
      verb,
      "Search",
      std::map<std::string, std::string>{
          {"stepwise_length_penalty", "!--no-stepwise-length-penalty"}});
  arguments.search.visit(*flags.search);
  verb.add_flag(
          "--sample",
          flags.sample,
          R"(Draw n-best translations, token by token, instead of searching for the best)")
      ->group("Sampling");
  flags.sampling = std::make_unique<FlagVisitor>(verb, "Sampling");
  visit_options(flags.sampling_options, *flags.sampling);
  verb.get_option("--ban-unknown")->group("Search");  // which heeds it too
  flags.seed = add_integer(
      verb,
      "--seed",
      arguments.seed,
      "Seed of the draws; a line's are a function of it and its number",
      0,
      std::numeric_limits<int64_t>::max());
  flags.seed->group("Sampling");
}

void add_memory_flags(CLI::App& verb, TranslateFlags& flags) {
  TranslateArguments& arguments = flags.arguments;
  add_integer(
      verb,
      "--batch-tokens",
      arguments.batch_tokens,
      "Most source tokens of a batch, padding counted",
      1)
      ->group("Speed and memory");
  flags.buffer = add_integer(
      verb,
      "--buffer-lines",
      arguments.buffer_lines,
      "Lines read, sorted by length and written at a time",
      1);
  flags.buffer->group("Speed and memory");
  add_integer(
      verb,
      "--max-source-tokens",
      arguments.max_source_tokens,
      "Cut longer lines, the end of a line counted; 0: as the model says",
      0)
      ->group("Speed and memory");
  flags.logits_memory = add_integer(
      verb,
      "--logits-memory",
      flags.backend.logits_megabytes,
      "Most MB of logits of a batch at a time; changes no output (runtime)",
      1,
      1 << 20);
  flags.logits_memory->group("Speed and memory");
  add_shortlist_flag(verb, flags);
  add_backend(verb, flags.backend, "Speed and memory");
}

/// "I/N".
InputPart parse_shard(const std::string& text) {
  constexpr int64_t kMost = 99'999;
  InputPart part;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, part.index);
  const bool slash = index.ptr != end && *index.ptr == '/';
  const auto count = std::from_chars(slash ? index.ptr + 1 : end, end, part.count);
  if (index.ec != std::errc() || !slash || count.ec != std::errc() || count.ptr != end ||
      part.index < 1 || part.index > part.count || part.count > kMost)
    fail_usage(
        "--shard must be I/N with 1 <= I <= N <= ",
        kMost,
        ", such as 1/8, but got '",
        shorten(text),
        "'");
  return part;
}

/// Which part of the input is this process's: as it is told or, where it was
/// started together with others, by its number among them.
void read_part(TranslateFlags& flags, const Launch& launch) {
  TranslateArguments& arguments = flags.arguments;
  const bool files = !arguments.input.empty() && !arguments.output.empty();
  if (flags.shard->count() > 0) {
    arguments.part = parse_shard(flags.shard_text);
    if (arguments.part.count > 1 && !files)
      fail_usage("--shard ", flags.shard_text, " needs --input FILE and --output FILE");
    return;
  }
  if (launch.size == 1)
    return;
  if (launch.size == 0)
    fail_usage(
        started_text(launch),
        ": --shard I/N says which part of an input is this one's, --shard 1/1 that it works alone");
  if (!files)
    fail_usage(
        started_text(launch),
        ", which share an input out by --input FILE and --output FILE; --shard 1/1 is for "
        "processes that work alone");
  arguments.part = {.index = launch.rank + 1, .count = launch.size};
  // Each of them would otherwise use all cores of its machine.
  const int64_t cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (flags.backend.threads == 0)
    flags.backend.threads = std::clamp<int64_t>(cores / launch.local_size, 1, thread_count(0));
}

void translate_flags(TranslateFlags& flags, const Launch& launch, std::ostream& out) {
  TranslateArguments& arguments = flags.arguments;
  arguments.search_given = flags.search->given();
  arguments.names = names_of(flags);
  read_sampling(flags);
  check_search(arguments);
  check_runtime_flags(flags);
  read_part(flags, launch);
  for (std::string& model : arguments.models)
    model = choose_checkpoint({model, arguments.links}, flags.checkpoint).string();
  // A person at the keyboard waits for each answer.
  if (flags.buffer->count() == 0 && arguments.input.empty() && ::isatty(STDIN_FILENO))
    arguments.buffer_lines = 1;
  arguments.workers = workers(flags.backend);
  if (!is_libtorch(flags.backend))
    arguments.logits_megabytes = flags.backend.logits_megabytes;
  PackedText in(std::cin, "standard input");
  verbs::translate(arguments, backend(flags.backend), in, out);
}

}  // namespace

void add_translation_flags(CLI::App& verb, TranslateFlags& flags) {
  TranslateArguments& arguments = flags.arguments;
  add_repeated(
      verb,
      "-m,--model",
      arguments.models,
      R"(Model folder (its best checkpoint) or a .safetensors file in one; several vote)")
      ->type_name("DIR")
      ->required();
  add_follow_links(verb, arguments.links);
  add_checkpoint(verb, flags.checkpoint);
  add_search_flags(verb, flags);
  verb.add_option(
          "--input",
          arguments.input,
          R"(Text, or fairseq's binarised data (.bin, .idx), instead of standard input)")
      ->type_name("FILE")
      ->group("Input and output");
  verb.add_option(
          "--output",
          arguments.output,
          R"(A new file instead of standard output; an interrupted run goes on)")
      ->type_name("FILE")
      ->group("Input and output");
  flags.shard =
      verb.add_option(
              "--shard",
              flags.shard_text,
              R"(Translate part I of N, from 1; the last to be done joins them [by mpirun or srun])")
          ->type_name("I/N")
          ->group("Input and output");
  add_strict(verb, arguments.strict)->group("Input and output");
  verb.add_flag(
          "--stats",
          arguments.stats,
          "Sentences, tokens and their rate on standard error at the end")
      ->group("Input and output");
  add_memory_flags(verb, flags);
}

void run_translation(TranslateFlags& flags, std::ostream& out) {
  const Launch launch = find_launch([](const char* name) { return std::getenv(name); });
  try {
    translate_flags(flags, launch, out);
  } catch (const Error&) {
    if (flags.shard->count() == 0)
      give_way(launch.rank);
    throw;
  }
}

}  // namespace seqconv::internal::cli
