// Preloaded into the program, this is a disk that is slow with some files: of
// those whose path holds SLOW_DISK_FILE, the write behind the first 8 bytes
// (where a safetensors file has its header) takes SLOW_DISK_SECONDS more, which
// no signal shortens.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

bool is_slow(int fd) {
  const char* wanted = std::getenv("SLOW_DISK_FILE");
  if (wanted == nullptr || ::lseek(fd, 0, SEEK_CUR) != 8)
    return false;
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link, path, sizeof path - 1);
  if (size < 0)
    return false;
  path[size] = '\0';
  return std::strstr(path, wanted) != nullptr;
}

void wait() {
  timespec end{};
  ::clock_gettime(CLOCK_MONOTONIC, &end);
  const double seconds = std::atof(std::getenv("SLOW_DISK_SECONDS"));
  end.tv_sec += static_cast<time_t>(seconds);
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) != 0)
    ;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) ssize_t write(
    int fd, const void* bytes, size_t size) {
  using Write = ssize_t (*)(int, const void*, size_t);
  static const auto real = reinterpret_cast<Write>(::dlsym(RTLD_NEXT, "write"));
  if (is_slow(fd))
    wait();
  return real(fd, bytes, size);
}
