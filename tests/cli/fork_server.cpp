// Preloaded into the program, this runs it many times for one start: LibTorch,
// whose start takes longer than most tests' work, is mapped once (where
// SEQCONV_FORK_ENGINE names the library that needs it), and each run
// is a fork that calls the program's own main with its own arguments and
// streams, before anything else has run. tests/cli/fork_server.py is the
// client.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Main = int (*)(int, char**, char**);

Main program_main = nullptr;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  ::_exit(99);
}

/// One run: its arguments, each ended by a NUL, and its three streams.
struct Request {
  std::string arguments;
  int streams[3];
};

/// Four bytes with the arguments' length come with the streams, the arguments
/// behind them. False when the client has left.
bool receive(int socket, Request& request) {
  uint32_t size = 0;
  iovec part{&size, sizeof size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof request.streams)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &message, MSG_WAITALL);
  if (got == 0)
    return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (got != sizeof size || header == nullptr)
    give_up("fork server: request");
  const auto* streams = reinterpret_cast<const int*>(CMSG_DATA(header));
  for (int i = 0; i < 3; ++i)
    request.streams[i] = streams[i];
  request.arguments.resize(size);
  const ssize_t read = ::recv(socket, request.arguments.data(), size, MSG_WAITALL);
  if (read != static_cast<ssize_t>(size))
    give_up("fork server: arguments");
  return true;
}

/// In the child: what a fresh process would do.
int run(Request& request, char** environment) {
  for (int i = 0; i < 3; ++i)
    if (::dup2(request.streams[i], i) < 0)
      give_up("fork server: streams");
  for (const int stream : request.streams)
    ::close(stream);
  std::vector<char*> arguments;
  std::string& all = request.arguments;
  for (size_t at = 0; at < all.size(); at = all.find('\0', at) + 1)
    arguments.push_back(all.data() + at);
  arguments.push_back(nullptr);
  const int count = static_cast<int>(arguments.size()) - 1;
  return program_main(count, arguments.data(), environment);
}

int serve(int, char**, char** environment) {
  const int socket = std::atoi(std::getenv("SEQCONV_FORK_SOCKET"));
  const char* engine = std::getenv("SEQCONV_FORK_ENGINE");
  if (engine != nullptr && ::dlopen(engine, RTLD_LAZY) == nullptr) {
    std::fprintf(stderr, "fork server: %s\n", ::dlerror());
    ::_exit(99);
  }
  ::unsetenv("LD_PRELOAD");
  for (Request request; receive(socket, request);) {
    const pid_t child = ::fork();
    if (child < 0)
      give_up("fork server: fork");
    if (child == 0) {
      ::close(socket);
      ::exit(run(request, environment));
    }
    for (const int stream : request.streams)
      ::close(stream);
    int status = 0;
    if (::waitpid(child, &status, 0) != child)
      give_up("fork server: wait");
    if (::send(socket, &status, sizeof status, MSG_NOSIGNAL) != sizeof status)
      break;
  }
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int __libc_start_main(
    Main main,
    int count,
    char** arguments,
    void (*init)(),
    void (*fini)(),
    void (*loader_fini)(),
    void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  program_main = main;
  return start(serve, count, arguments, init, fini, loader_fini, stack_end);
}
