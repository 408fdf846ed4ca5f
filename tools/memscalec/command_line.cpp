// Parsing of command lines. CLI11 throws; nothing leaves this file as an exception.
#include "tools/memscalec/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "compiler/driver/config.h"
#include "compiler/driver/suggest.h"
#include "tools/memscalec/terminal.h"

namespace memscale::cli {
namespace {

Error unknown_argument(const CLI::App& app, const std::string& argument) {
  if (argument.empty() || argument[0] != '-') {
    return {Exit::kUsage, "unexpected argument '" + argument + "'",
            "memscalec takes one input; see " + app.get_name() + " --help"};
  }
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::string given = argument.substr(0, argument.find('='));
  const std::string near = driver::nearest(given, known);
  return {Exit::kUsage, "unknown option '" + given + "'",
          (near.empty() ? "" : "did you mean '" + near + "'? ") + app.get_name() + " --help lists all"};
}

std::string flags_of(const driver::Setting& setting) {
  const std::string key = setting.key;
  if (key == "input") return "input";
  const char* brief = key == "output" ? "-o," : key == "verbose" ? "-v," : key == "quiet" ? "-q," : "";
  return brief + ("--" + key);
}

}  // namespace

int parse(CLI::App& app, const Arguments& arguments) {
  app.set_version_flag("--version", std::string("memscalec ") + MEMSCALE_VERSION);
  app.get_formatter()->column_width(30);
  app.allow_extras();
  try {
    Arguments reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants it
    app.parse(reversed);
  } catch (const CLI::CallForHelp& e) {
    app.exit(e, std::cout, std::cerr);
    return 0;
  } catch (const CLI::CallForVersion& e) {
    app.exit(e, std::cout, std::cerr);
    return 0;
  } catch (const CLI::Error& e) {
    return report_error({Exit::kUsage, e.what(), app.get_name() + " --help lists all options"});
  }
  const std::vector<std::string> extras = app.remaining();
  if (!extras.empty()) {
    // The option that is not known, rather than the value that stood behind it.
    const auto option =
        std::find_if(extras.begin(), extras.end(), [](const std::string& e) { return !e.empty() && e[0] == '-'; });
    return report_error(unknown_argument(app, option != extras.end() ? *option : extras.front()));
  }
  return -1;
}

void add_settings(CLI::App& app, CompileArguments& arguments) {
  using Form = driver::Setting::Form;
  arguments.values.reserve(driver::settings().size());  // CLI11 keeps references
  for (const driver::Setting& setting : driver::settings()) {
    arguments.values.emplace_back(&setting, std::vector<std::string>());
    std::vector<std::string>& values = arguments.values.back().second;
    if (setting.form == Form::kFlag) {
      app.add_flag_function(
          flags_of(setting), [&values](std::int64_t count) { values.assign(count > 0 ? 1 : 0, "true"); }, setting.help);
      continue;
    }
    CLI::Option* option =
        app.add_option(flags_of(setting), values, setting.help)->type_name(setting.value_name)->allow_extra_args(false);
    if (setting.form == Form::kOptionalValue) {
      option->expected(0, 1)->type_name("[=" + std::string(setting.value_name) + "]");
    } else {
      option->expected(1);
    }
    option->multi_option_policy(setting.form == Form::kList ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::Throw);
  }
  app.add_option("--config", arguments.config, "read settings from a YAML file; the command line has the last word")
      ->type_name("FILE");
  app.add_flag("--print-config", arguments.print_config, "print the settings as a YAML file and end");
}

Expected<driver::CompileOptions> apply(const CompileArguments& arguments) {
  driver::CompileOptions options;
  if (!arguments.config.empty()) {
    Expected<Success> read = driver::read_config(arguments.config, options);
    if (!read) return read.error();
  }
  const bool says_how_loud = std::any_of(arguments.values.begin(), arguments.values.end(), [](const auto& given) {
    return !given.second.empty() &&
           (std::string_view(given.first->key) == "verbose" || std::string_view(given.first->key) == "quiet");
  });
  if (says_how_loud) options.verbosity = 0;  // the file's is overruled
  for (const auto& [setting, values] : arguments.values) {
    if (values.empty()) continue;
    if (setting->clear != nullptr) setting->clear(options);
    for (const std::string& value : values) {
      Expected<Success> set = setting->set(options, value);
      if (!set) return set.error();
    }
  }
  return options;
}

}  // namespace memscale::cli
