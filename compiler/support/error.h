// Errors that reach the user: an exit code, what happened, what helps. No exception crosses a library border of the compiler.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace memscale {

/// Exit codes of memscalec (docs/cli.md).
enum class Exit : int {
  kOk = 0,
  kCompile = 1,
  kUsage = 2,
  kInfeasible = 3,
  kUnsupported = 4,
  kVerification = 5,
  kUnsafe = 6,
  kInternal = 70,
  kInterrupted = 130,
};

struct Error {
  Exit code = Exit::kCompile;
  std::string message;  // what was expected and what was found; several lines allowed
  std::string help;     // the flag or edit that helps; may be empty
};

/// A value or an Error.
template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::move(value)) {}
  Expected(Error error) : state_(std::move(error)) {}
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Success {};

}  // namespace memscale
