#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "serve/keys.h"
#include "serve/server.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kServeExamples =
    "Serves translations over HTTP, by the interface of LibreTranslate, until\n"
    "SIGTERM or SIGINT; what is under way then is answered first. SIGHUP reads\n"
    "models and keys anew, and opens the log anew. See docs/serving.md.\n"
    "\n"
    "Examples:\n"
    "  seqconv serve --model de-en=runs/mine\n"
    "  seqconv serve --model de-en=a --model pt-BR:en=b --port 8000\n"
    "  seqconv serve --config serve.toml\n"
    "  seqconv serve --new-key anna >> keys.txt\n"
    "  curl -d q='Guten Morgen.' -d source=de -d target=en localhost:5000/translate\n"
    "\n"
    "Keys of the file that --config names are the names of these flags, with '_'\n"
    "for '-'; flags go before them.";

struct ServeFlags {
  ServeOptions options;
  std::string config;
  std::string new_key;
  std::unique_ptr<FlagVisitor> visitor;
};

/// The options of the file, and over them those of the command line.
ServeOptions merged(const ServeFlags& flags) {
  if (flags.config.empty())
    return flags.options;
  Json table = load_toml(flags.config);
  const Json given = write_options(flags.options);
  for (const std::string& key : flags.visitor->given())
    table[key] = given.at(key);
  ServeOptions options;
  read_options(table, "", options);
  return options;
}

/// Blocks the signals that end a server or tell it to read anew, for threads that start later
/// too.
sigset_t block_signals() {
  sigset_t signals{};
  sigemptyset(&signals);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM})
    sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

/// Waits in a thread of its own for signals that were blocked, and tells a server.
class ServerSignals {
 public:
  ServerSignals(const sigset_t& signals, Server& server)
      : signals_(signals), server_(server), thread_([this] { listen(); }) {}
  ~ServerSignals() {
    has_ended_ = true;
    ::pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }
  ServerSignals(const ServerSignals&) = delete;
  ServerSignals& operator=(const ServerSignals&) = delete;

 private:
  /// The second signal to end ends the program at once.
  void listen() {
    for (bool is_ending = false; !has_ended_;) {
      int signal = 0;
      if (::sigwait(&signals_, &signal) != 0 || has_ended_)
        continue;
      if (is_ending && signal != SIGHUP)
        ::_exit(128 + signal);
      if (signal != SIGHUP) {
        is_ending = true;
        log_info("ends when all requests are answered");
        server_.stop();
      } else if (!is_ending) {
        server_.reload();
      }
    }
  }

  const sigset_t signals_;
  Server& server_;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

void print_new_key(const std::string& name, std::ostream& out) {
  const NewApiKey made = make_api_key(name);
  out << made.line << '\n';
  log_line(LogLevel::kInfo, concat("the key, which is not kept anywhere: ", made.key));
}

void run_serve(const ServeFlags& flags, std::ostream& out) {
  if (!flags.new_key.empty())
    return print_new_key(flags.new_key, out);
  const sigset_t signals = block_signals();
  const ServeOptions options = merged(flags);
  Server server(options);
  const std::string host =
      options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  log_info("serves at http://", host, ":", server.port());
  if (server.metrics_port() != 0)
    log_info("serves metrics at http://", host, ":", server.metrics_port(), "/metrics");
  const ServerSignals listener(signals, server);
  server.run();
}

}  // namespace

void add_serve(Program& program) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App& verb = program.add_verb(
      "serve", "Serve translations over HTTP: LibreTranslate's interface", kServeExamples);
  verb.add_option("--config", flags->config, "TOML file of these options")->type_name("FILE");
  flags->visitor = std::make_unique<FlagVisitor>(verb, "Server");
  flags->options.visit(*flags->visitor);
  verb.add_option(
          "--new-key", flags->new_key, "Print a line for the file of --keys, and its key, and end")
      ->type_name("NAME");
  verb.callback(
      [&program, flags] { program.run = [&program, flags] { run_serve(*flags, program.out); }; });
}

}  // namespace seqconv::internal::cli
