#include "train/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/log.h"

namespace seqconv::internal {
namespace {

constexpr int kBarWidth = 24;

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[128];
  const int size = std::snprintf(text, sizeof text, pattern, values...);
  return {text, static_cast<size_t>(std::clamp(size, 0, 127))};
}

bool terminal_takes_a_bar() {
  const char* term = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb" &&
      (no_color == nullptr || *no_color == '\0');
}

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string duration_text(double seconds) {
  const auto total = static_cast<long long>(std::clamp(std::round(seconds), 0.0, 86400.0 * 36500));
  const long long days = total / 86400;
  const long long hours = total / 3600 % 24;
  const long long minutes = total / 60 % 60;
  if (days > 0)
    return format("%lldd %02lld:%02lld", days, hours, minutes);
  if (hours > 0)
    return format("%lld:%02lld:%02lld", hours, minutes, total % 60);
  return format("%lld:%02lld", minutes, total % 60);
}

std::string time_left_text(const ProgressStatus& status) {
  double seconds = status.seconds_left;
  if (status.updates_left >= 0 && status.seconds_per_update > 0) {
    const double counted = static_cast<double>(status.updates_left) * status.seconds_per_update;
    seconds = seconds < 0 ? counted : std::min(seconds, counted);
  }
  return seconds < 0 ? "" : duration_text(seconds) + " left";
}

std::string progress_bar(const ProgressStatus& status) {
  const double share = status.batches > 0
      ? static_cast<double>(status.batch) / static_cast<double>(status.batches)
      : 0;
  const auto full = static_cast<size_t>(share * kBarWidth);
  std::string text = concat("epoch ", status.epoch);
  if (status.max_epochs > 0)
    text += concat("/", status.max_epochs);
  text += " [" + std::string(full, '#') + std::string(kBarWidth - full, '-') + "]" +
      format(" %3.0f %%", 100 * std::floor(share * 100) / 100);
  if (status.loss_base2 > 0)
    text += format("  loss %.3f", status.loss_base2);
  if (status.tokens_per_second > 0)
    text += format("  %.0f tok/s", status.tokens_per_second);
  const std::string left = time_left_text(status);
  return left.empty() ? text : text + "  " + left;
}

Progress::Progress() : has_bar_(log_level() == LogLevel::kInfo && terminal_takes_a_bar()) {}

void Progress::show(const ProgressStatus& status) {
  const auto now = std::chrono::steady_clock::now();
  if (!has_bar_ || (width_ > 0 && now - drawn_ < std::chrono::milliseconds(100)))
    return;
  drawn_ = now;
  std::string text = progress_bar(status);
  const size_t width = text.size();
  text.append(width_ > width ? width_ - width : 0, ' ');
  width_ = width;
  put(concat('\r', text));
}

void Progress::line(const std::string& text) {
  clear();
  log_info(text);
}

void Progress::clear() {
  if (width_ > 0)
    put(concat('\r', std::string(width_, ' '), '\r'));
  width_ = 0;
}

}  // namespace seqconv::internal
