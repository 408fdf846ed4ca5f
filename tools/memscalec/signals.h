// SIGINT and SIGTERM end memscalec without leaving a half-written file.
#pragma once

#include <string>

namespace memscale::cli {

/// Blocks both signals in this thread and all threads that it starts, and waits for them on a thread of its own. Call it first in
/// main.
void watch_signals();

/// A temporary file that is removed if a signal arrives; it need not exist.
void remove_on_signal(const std::string& path);

}  // namespace memscale::cli
