// What memscalec says to people, on standard error: errors, warnings, and on a terminal the progress of anything over a second.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "compiler/support/error.h"

namespace memscale::cli {

/// Prints "memscalec: error: …" and the help; returns the exit code.
int report_error(const Error& error);
void report_warning(const std::string& text);

/// Text as it may be shown: control characters and bytes that are no UTF-8 become \xNN. Names in archives may hold anything.
std::string printable(const std::string& text);

/// Prints to standard output as printable(); false if that failed (a full disk, a closed pipe).
bool print_result(const std::string& text);

/// Shows what is being done: on a terminal once a phase has taken a second, with -v one line per phase and its time.
class Progress {
 public:
  /// `verbosity`: -1 says nothing at all, 1 names each phase.
  explicit Progress(int verbosity);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Begins a phase and ends the one before; an empty name ends it alone.
  void phase(const std::string& name);

 private:
  void tick();
  void end_phase();

  bool verbose_, live_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string name_;
  double began_ = 0;
  bool shown_ = false, stop_ = false;
  std::thread ticker_;
};

}  // namespace memscale::cli
