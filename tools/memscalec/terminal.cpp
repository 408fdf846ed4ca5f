// Messages and progress.
#include "tools/memscalec/terminal.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace memscale::cli {
namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool colour() {
  static const bool yes = ::isatty(STDERR_FILENO) != 0;
  return yes;
}

}  // namespace

std::string printable(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = byte < 0x80                   ? 1
                          : byte >= 0xc2 && byte < 0xe0 ? 2
                          : byte >= 0xe0 && byte < 0xf0 ? 3
                          : byte >= 0xf0 && byte < 0xf5 ? 4
                                                        : 0;
    bool whole = length > 0 && i + length <= text.size();
    for (size_t k = 1; whole && k < length; ++k) whole = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    const bool control = length == 1 && (byte < 0x20 || byte == 0x7f) && byte != '\n' && byte != '\t';
    // C1 controls, in UTF-8 c2 80 to c2 9f, move a terminal's cursor too.
    const bool c1 = whole && length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (whole && !control && !c1) {
      out.append(text, i, length);
      i += length;
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
    out += escaped;
    ++i;
  }
  return out;
}

int report_error(const Error& error) {
  std::fprintf(stderr, "memscalec: %serror:%s %s\n", colour() ? "\033[1;31m" : "", colour() ? "\033[0m" : "",
               printable(error.message).c_str());
  if (!error.help.empty()) std::fprintf(stderr, "  help: %s\n", printable(error.help).c_str());
  if (error.code == Exit::kInternal) {
    std::fprintf(stderr, "  This is a fault of memscale. Please report it with the command and, if you may, the archive.\n");
  }
  return static_cast<int>(error.code);
}

void report_warning(const std::string& text) {
  std::fprintf(stderr, "memscalec: %swarning:%s %s\n", colour() ? "\033[1;35m" : "", colour() ? "\033[0m" : "",
               printable(text).c_str());
}

bool print_result(const std::string& raw) {
  const std::string text = printable(raw);
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

Progress::Progress(int verbosity) : verbose_(verbosity > 0), live_(verbosity == 0 && ::isatty(STDERR_FILENO) != 0) {
  if (live_) ticker_ = std::thread([this] { tick(); });
}

Progress::~Progress() {
  phase("");
  if (!live_) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  ticker_.join();
}

void Progress::phase(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  end_phase();
  name_ = name;
  began_ = now_s();
}

void Progress::end_phase() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
  if (verbose_ && !name_.empty()) std::fprintf(stderr, "memscalec: %-28s %8.3f s\n", name_.c_str(), now_s() - began_);
}

void Progress::tick() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    wake_.wait_for(lock, std::chrono::milliseconds(200));
    const double seconds = now_s() - began_;
    if (stop_ || name_.empty() || seconds < 1) continue;
    std::fprintf(stderr, "\r\033[Kmemscalec: %s, %.0f s", name_.c_str(), seconds);
    std::fflush(stderr);
    shown_ = true;
  }
}

}  // namespace memscale::cli
