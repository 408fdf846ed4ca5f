// The signal thread: it may do what a handler may not, such as taking a lock.
#include "tools/memscalec/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "compiler/support/error.h"

namespace memscale::cli {
namespace {

std::mutex g_mutex;
std::vector<std::string>& files() {
  static auto* list = new std::vector<std::string>();
  return *list;
}

[[noreturn]] void wait_for_signal(sigset_t set) {
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  const std::lock_guard<std::mutex> lock(g_mutex);
  for (const std::string& file : files()) ::unlink(file.c_str());
  const char* text = signal == SIGINT ? "\nmemscalec: interrupted\n" : "\nmemscalec: terminated\n";
  std::fputs(text, stderr);
  ::_exit(signal == SIGINT ? static_cast<int>(Exit::kInterrupted) : 128 + signal);
}

}  // namespace

void watch_signals() {
  ::signal(SIGXFSZ, SIG_IGN);  // a write beyond a file-size limit fails with EFBIG
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  // A parent that ignores SIGINT (nohup, a background job of a shell without job control) meant it.
  struct sigaction before {};
  if (sigaction(SIGINT, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) sigdelset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread(wait_for_signal, set).detach();
}

void remove_on_signal(const std::string& path) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  files().push_back(path);
}

}  // namespace memscale::cli
