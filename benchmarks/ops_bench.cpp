// Times the operators' kernels beside what the machine can do at most and
// beside what people would use instead, in one run.
//
//   ops_bench [--tokens 4096] [--channels 512 1024] [--head-channels 64]
//             [--lengths 32 128 512 2048] [--kernels 3 7 15 31 63]
//             [--reaches 15 31] [--narrow 1 2 8] [--ops lightconv ...]
//             [--types float32 bfloat16] [--drop 0]
//             [--isa avx512] [--threads 2] [--repeats 5] [--rounds 1]
//             [--skip-floors] [--skip-rivals] [--json FILE]
//
// Floor: the longer of moving every byte once at the rate of the better of two
// copies of as many bytes, and of doing every operation at the rate of a loop
// of multiply-adds on registers, all measured beside the kernel. A kernel is
// compared with its reference before it is timed. With several rounds all rows
// are timed, then all of them again: what slows the machine down for minutes
// meets some rounds of every row instead of all rounds of some.

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/options.h"
#include "ceilings.h"
#include "kernels/isa.h"
#include "libtorch/ops/parallel.h"
#include "op_cases.h"
#include "rival_cases.h"
#include "timing.h"

namespace {

using namespace seqconv;
using namespace seqconv::internal;
using namespace seqconv::bench;
using Json = nlohmann::ordered_json;

/// K of convolutions with few channels a head.
constexpr int64_t kNarrowTaps = 7;

struct Settings {
  int64_t tokens = 4096;
  std::vector<int64_t> channels = {512, 1024};
  int64_t head_channels = 64;
  std::vector<int64_t> lengths = {32, 128, 512, 2048};
  std::vector<int64_t> kernels = {3, 7, 15, 31, 63};
  std::vector<int64_t> reaches = {15, 31};
  std::vector<int64_t> narrow = {1, 2, 8};
  std::vector<std::string> ops = {"lightconv", "dynamicconv", "talk"};
  std::vector<std::string> types = {"float32"};
  double drop = 0;
  kernels::Isa isa = kernels::best_isa();
  int threads = 2;
  int rounds = 1;
  bool skip_floors = false;
  bool skip_rivals = false;
  std::string json;
  TimingOptions timing;
};

/// Instruction sets that this processor has, by name.
std::map<std::string, kernels::Isa> runnable_isas() {
  std::map<std::string, kernels::Isa> named;
  for (const kernels::Isa isa : kernels::supported_isas())
    named.emplace(enum_name(isa), isa);
  return named;
}

Settings parse(int argc, char** argv) {
  Settings s;
  CLI::App app{"Operators against the machine and against their rivals"};
  app.add_option("--tokens", s.tokens, "B * T");
  app.add_option("--channels", s.channels, "C");
  app.add_option("--head-channels", s.head_channels, "R = C / H")->check(CLI::PositiveNumber);
  app.add_option("--lengths", s.lengths, "T");
  app.add_option("--kernels", s.kernels, "K of the convolutions");
  app.add_option("--reaches", s.reaches, "furthest reach of talk to a side");
  app.add_option(
         "--narrow",
         s.narrow,
         "R of further rows, of the last C and T, and 7 taps or the last reach")
      ->check(CLI::PositiveNumber);
  app.add_option("--ops", s.ops)->check(CLI::IsMember({"lightconv", "dynamicconv", "talk"}));
  app.add_option("--types", s.types)->check(CLI::IsMember({"float32", "bfloat16"}));
  app.add_option(
         "--drop",
         s.drop,
         "share of the convolutions' taps that is dropped, as in training; rows against rivals "
         "drop nothing")
      ->check(CLI::Range(0.0, 0.99));
  app.add_option(
         "--isa",
         s.isa,
         "instruction set of the kernels beside the floors; the comparison with references is of "
         "the best one")
      ->transform(CLI::CheckedTransformer(runnable_isas()));
  app.add_option("--threads", s.threads)->check(CLI::PositiveNumber);
  app.add_option("--repeats", s.timing.repeats, "turns of a row in a round")
      ->check(CLI::PositiveNumber);
  app.add_option("--rounds", s.rounds, "through all rows; medians of them")
      ->check(CLI::PositiveNumber);
  app.add_option(
      "--min", s.timing.min, "seconds of warming up before a repeat, and about as many of it");
  app.add_flag("--skip-floors", s.skip_floors);
  app.add_flag("--skip-rivals", s.skip_rivals);
  app.add_option("--json", s.json, "write every row here as well");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return s;
}

Op parse_op(const std::string& name) {
  for (const Op op : {Op::kLightConv, Op::kDynamicConv, Op::kTalk})
    if (op_name(op) == name)
      return op;
  fail("unknown operator ", name);
}

/// After the last row of an operator and type, the same with few channels a head.
void add_narrow_heads(const Settings& s, std::vector<OpShape>& all) {
  std::vector<OpShape> with;
  for (size_t i = 0; i < all.size(); ++i) {
    with.push_back(all[i]);
    const bool last =
        i + 1 == all.size() || all[i + 1].op != all[i].op || all[i + 1].storage != all[i].storage;
    if (!last)
      continue;
    for (const int64_t R : s.narrow) {
      if (all[i].channels % R != 0)
        fail_usage("the last of --channels must be a multiple of --narrow ", R);
      with.push_back(all[i]);
      with.back().head_channels = R;
      if (all[i].op != Op::kTalk)
        with.back().kernel_size = kNarrowTaps;
    }
  }
  all = with;
}

std::vector<OpShape> shapes(const Settings& s) {
  for (const int64_t C : s.channels)
    if (C < 1 || C % s.head_channels != 0)
      fail_usage(
          "--channels must be multiples of --head-channels ", s.head_channels, ", but got ", C);
  std::vector<OpShape> all;
  for (const std::string& type : s.types)
    for (const std::string& op : s.ops)
      for (const int64_t C : s.channels)
        for (const int64_t K : op == "talk" ? s.reaches : s.kernels)
          for (const int64_t T : s.lengths)
            all.push_back(
                {.op = parse_op(op),
                 .storage = type == "float32" ? Storage::kFloat32 : Storage::kBFloat16,
                 .batch = std::max<int64_t>(1, s.tokens / T),
                 .steps = T,
                 .channels = C,
                 .head_channels = s.head_channels,
                 .kernel_size = K,
                 .drop = s.drop,
                 .isa = s.isa});
  add_narrow_heads(s, all);
  return all;
}

Json floor_row(
    const OpShape& shape,
    const char* pass,
    const Work& work,
    double seconds,
    double copy_rate,
    const char* copy_name,
    double fma_rate) {
  const double by_bytes = work.bytes / copy_rate;
  const double by_flops = work.flops / fma_rate;
  const double floor = std::max(by_bytes, by_flops);
  return {
      {"op", op_name(shape.op)},
      {"pass", pass},
      {"type", storage_name(shape.storage)},
      {"C", shape.channels},
      {"H", shape.heads()},
      {"K", shape.kernel_size},
      {"T", shape.steps},
      {"B", shape.batch},
      {"ms", seconds * 1e3},
      {"gb_per_s", work.bytes / seconds / 1e9},
      {"gflop_per_s", work.flops / seconds / 1e9},
      {"copy_gb_per_s", copy_rate / 1e9},
      {"fma_gflop_per_s", fma_rate / 1e9},
      {"bound", by_bytes > by_flops ? copy_name : "fma"},
      {"percent_of_floor", 100 * floor / seconds}};
}

void print_floor_row(const Json& row) {
  std::printf(
      "%-11s %-8s %-8s C %4ld R %3ld K %3ld T %5ld %9.3f ms %7.1f GB/s %7.1f GFLOP/s (copy %5.1f, "
      "fma "
      "%6.1f) %5.1f %% of %s\n",
      row["op"].get<std::string>().c_str(),
      row["pass"].get<std::string>().c_str(),
      row["type"].get<std::string>().c_str(),
      row["C"].get<long>(),
      row["C"].get<long>() / row["H"].get<long>(),
      row["K"].get<long>(),
      row["T"].get<long>(),
      row["ms"].get<double>(),
      row["gb_per_s"].get<double>(),
      row["gflop_per_s"].get<double>(),
      row["copy_gb_per_s"].get<double>(),
      row["fma_gflop_per_s"].get<double>(),
      row["percent_of_floor"].get<double>(),
      row["bound"].get<std::string>().c_str());
  std::fflush(stdout);
}

/// What one round says of a shape: seconds of the forward and the backward
/// pass, bytes per second of the plain and the streaming copy beside each, and
/// multiply-adds per second.
std::vector<double> time_against_floor(const OpCase& timed, const Settings& s) {
  const auto& threads = ops::parallel_for();
  Copy forward(static_cast<int64_t>(timed.forward_work.bytes), threads);
  Copy backward(static_cast<int64_t>(timed.backward_work.bytes), threads);
  const auto t = median_seconds(
      {timed.forward,
       timed.backward,
       [&] { forward.plain(); },
       [&] { forward.streaming(); },
       [&] { backward.plain(); },
       [&] { backward.streaming(); },
       [&] { fma_burst(s.threads, threads); }},
      s.timing);
  return {
      t[0],
      t[1],
      forward.bytes() / t[2],
      forward.bytes() / t[3],
      backward.bytes() / t[4],
      backward.bytes() / t[5],
      fma_burst_flops(s.threads) / t[6]};
}

/// Both passes of one shape beside the copies and the multiply-adds; `t` as
/// from time_against_floor().
void add_floor_rows(
    const OpShape& shape, const OpCase& timed, const std::vector<double>& t, Json& rows) {
  for (const bool back : {false, true}) {
    const double plain = t[back ? 4 : 2], streaming = t[back ? 5 : 3];
    rows.push_back(floor_row(
        shape,
        back ? "backward" : "forward",
        back ? timed.backward_work : timed.forward_work,
        t[back ? 1 : 0],
        std::max(plain, streaming),
        plain >= streaming ? "copy" : "streaming copy",
        t[6]));
    print_floor_row(rows.back());
  }
}

void run_floors(const Settings& s, Json& rows) {
  const std::vector<OpShape> all = shapes(s);
  std::vector<Samples> samples(all.size());
  for (int round = 0; round < s.rounds; ++round)
    for (size_t i = 0; i < all.size(); ++i) {
      if (round == 0)
        check_case(all[i]);
      const OpCase timed = make_case(all[i]);
      samples[i].push_back(time_against_floor(timed, s));
      if (round + 1 == s.rounds)
        add_floor_rows(all[i], timed, medians(samples[i]), rows);
    }
}

/// One of ours beside everything that does its job; seconds of each.
std::vector<double> time_against_rivals(const RivalGroup& group, const Settings& s) {
  std::vector<std::function<void()>> calls;
  for (const RivalCase& entry : group.entries)
    calls.push_back(entry.call);
  return median_seconds(calls, s.timing);
}

void add_rival_rows(const RivalGroup& group, const std::vector<double>& t, Json& rows) {
  for (size_t i = 0; i < t.size(); ++i) {
    rows.push_back(
        {{"op", group.name},
         {"pass", group.pass},
         {"C", group.channels},
         {"K", group.kernel_size},
         {"T", group.steps},
         {"what", group.entries[i].name},
         {"ms", t[i] * 1e3},
         {"times_ours", t[i] / t[0]}});
    std::printf(
        "%-11s %-8s C %4ld K %3ld T %5ld %-18s %9.3f ms %8.2f x ours\n",
        group.name.c_str(),
        group.pass.c_str(),
        long(group.channels),
        long(group.kernel_size),
        long(group.steps),
        group.entries[i].name.c_str(),
        t[i] * 1e3,
        t[i] / t[0]);
  }
  std::fflush(stdout);
}

void run_rivals(const Settings& s, Json& rows) {
  std::map<std::pair<int64_t, size_t>, Samples> samples;
  for (int round = 0; round < s.rounds; ++round)
    for (const int64_t T : s.lengths) {
      const auto groups = rival_groups(s.tokens, T);
      for (size_t i = 0; i < groups.size(); ++i) {
        Samples& of = samples[{T, i}];
        of.push_back(time_against_rivals(groups[i], s));
        if (round + 1 == s.rounds)
          add_rival_rows(groups[i], medians(of), rows);
      }
    }
}

int run(const Settings& s) {
  at::set_num_threads(s.threads);
  Json floors = Json::array(), rivals = Json::array();
  if (!s.skip_floors)
    run_floors(s, floors);
  if (!s.skip_rivals)
    run_rivals(s, rivals);
  if (!s.json.empty()) {
    const Json report = {
        {"threads", s.threads},
        {"tokens", s.tokens},
        {"drop", s.drop},
        {"isa", std::string(enum_name(s.isa))},
        {"floors", floors},
        {"rivals", rivals}};
    std::ofstream out(s.json);
    out << report.dump(1) << '\n';
    SEQCONV_CHECK(out.good(), "cannot write ", s.json);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "ops_bench: " << error.what() << '\n';
    return 1;
  }
}
