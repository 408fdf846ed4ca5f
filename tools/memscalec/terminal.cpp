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

int report_error(const Error& error) {
  std::fprintf(stderr, "memscalec: %serror:%s %s\n", colour() ? "\033[1;31m" : "", colour() ? "\033[0m" : "", error.message.c_str());
  if (!error.help.empty()) std::fprintf(stderr, "  help: %s\n", error.help.c_str());
  if (error.code == Exit::kInternal) {
    std::fprintf(stderr, "  This is a fault of memscale. Please report it with the command and, if you may, the archive.\n");
  }
  return static_cast<int>(error.code);
}

void report_warning(const std::string& text) {
  std::fprintf(stderr, "memscalec: %swarning:%s %s\n", colour() ? "\033[1;35m" : "", colour() ? "\033[0m" : "", text.c_str());
}

bool print_result(const std::string& text) {
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
