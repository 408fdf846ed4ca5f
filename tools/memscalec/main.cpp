// memscalec: the verb is chosen here; nothing leaves as an exception.
#include <exception>
#include <new>

#include "tools/memscalec/signals.h"
#include "tools/memscalec/terminal.h"
#include "tools/memscalec/verbs.h"

namespace {

int run(const memscale::cli::Arguments& arguments) {
  using namespace memscale::cli;
  const std::string verb = arguments.empty() ? "" : arguments.front();
  const Arguments rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (verb == "verify") return run_verify(rest);
  if (verb == "inspect") return run_inspect(rest);
  return run_compile(verb == "compile" ? rest : arguments);
}

}  // namespace

int main(int argc, char** argv) {
  using memscale::Exit;
  memscale::cli::watch_signals();
  try {
    return run(memscale::cli::Arguments(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    return memscale::cli::report_error(
        {Exit::kCompile, "there is not enough memory on this machine", "close other programs, or use a larger machine"});
  } catch (const std::exception& e) {
    return memscale::cli::report_error({Exit::kInternal, std::string("unexpected exception: ") + e.what(), ""});
  } catch (...) {
    return memscale::cli::report_error({Exit::kInternal, "unexpected exception of an unknown type", ""});
  }
}
