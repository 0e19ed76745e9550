#include "host/validate/child.hpp"

#include <dlfcn.h>
#include <sys/resource.h>

#include <boost/core/demangle.hpp>
#include <map>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/number.hpp"
#include "config/files.hpp"
#include "host/plugin/elf_file.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/validate/probe.hpp"

namespace sluice::validate {
namespace {

using Level = Finding::Level;
using Values = std::map<std::string, std::string>;

/// Stands before a bare table of options, in lines that errors are not to count.
constexpr std::string_view kJobAround = "[job]\nqueue = \"validate\"\nhandler = \"validate\"\n[job.options]\n";
constexpr std::uint32_t kLinesAround = 4;

/// A plugin that takes more is stopped before the machine is.
void limit_process() {
  constexpr rlim_t kFileBytes = rlim_t{1} << 30U;
  constexpr rlim_t kDescriptors = 1024;
  const rlimit files{kFileBytes, kFileBytes};
  ::setrlimit(RLIMIT_FSIZE, &files);
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = std::min(descriptors.rlim_cur, kDescriptors);
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
#ifndef SLUICE_SANITIZED  // Sanitizers take their memory as they like.
  // Five hundred stacks of threads, which are seldom touched.
  constexpr rlim_t kMemory = rlim_t{4} << 30U;
  const rlimit memory{kMemory, kMemory};
  ::setrlimit(RLIMIT_DATA, &memory);
#endif
}

std::uint64_t number_of(const std::string& text) { return parse_number<std::uint64_t>(text).value_or(0); }

OptionsFile options_file_of(const Values& values) {
  const bool is_job = values.count("--job") > 0;
  const auto found = values.find(is_job ? "--job" : "--options");
  return {found == values.end() ? std::string() : found->second, is_job};
}

/// A job for the handler: with the file's options, and values that are made up for those that are missing.
config::JobConfig job_for(const sluice_handler& handler, const Values& values, const isolation::TrialSteps& steps) {
  config::JobConfig job;
  job.name = "validate";
  job.queue = "validate";
  job.handler = handler.name;
  const OptionsFile file = options_file_of(values);
  if (!file.path.empty()) {
    if (const auto given = read_options(file)) {
      job.options = given->options;
    }
  }
  std::vector<std::string> made_up;
  for (std::size_t i = 0; i < handler.option_count; ++i) {
    const sluice_option& option = *handler.options[i];
    const bool needed = (option.flags & SLUICE_OPTION_REQUIRED) != 0 && option.default_value == nullptr;
    if (needed && file.path.empty()) {
      job.options.emplace(option.name, config::Option{made_up_value(option), {}});
      made_up.emplace_back(option.name);
    }
  }
  if (!made_up.empty()) {
    steps.tell(told_line({"note", "made up: " + joined(made_up) + " (--options FILE gives others)"}));
  }
  return job;
}

/// "a, b, c and 4 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    shown.push_back(boost::core::demangle(names[i].c_str()));
  }
  return joined(shown) + (names.size() > kMost ? " and " + std::to_string(names.size() - kMost) + " more" : "");
}

/// Names that the loaded file uses and that none of the libraries has which it names.
std::vector<std::string> borrowed_names(const plugin::ElfFile& elf, const std::string& file) {
  std::vector<std::string> names = elf.undefined();
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  std::erase_if(names, [library](const std::string& name) {
    return library == nullptr || ::dlsym(library, name.c_str()) != nullptr;
  });
  return names;
}

void look_at_symbols(const std::string& file, const isolation::TrialSteps& steps) {
  const auto elf = plugin::ElfFile::open(file);
  if (!elf) {
    return;
  }
  std::vector<std::string> exported;
  for (const plugin::ElfSymbol& symbol : (*elf)->exported()) {
    if (symbol.name != SLUICE_PLUGIN_SYMBOL) {
      exported.push_back(symbol.name);
    }
  }
  const std::vector<std::string> borrowed = borrowed_names(**elf, file);
  if (!exported.empty()) {
    steps.tell(told_finding(
        {"symbols", Level::warning, "it exports " + some_of(exported) + " beside " SLUICE_PLUGIN_SYMBOL, "",
         "a name that the host or another plugin has too may be taken for it, and code that was not meant runs",
         "link with the version script of sluice_add_plugin (-Wl,--version-script=plugin.map, -fvisibility=hidden)"}));
  }
  if (!borrowed.empty()) {
    steps.tell(told_finding(
        {"libraries", Level::warning, "it uses " + some_of(borrowed) + ", which no library that it names has", "",
         "it loads where the host happens to have that library, and in the next version of the host no longer",
         "link the library that has it (LIBRARIES of sluice_add_plugin), and with -Wl,-z,defs, which finds the next"}));
  }
}

/// Whether the file's options fit the handler, which only those who give one want to know.
void look_at_options(const sluice_plugin& plugin, const Values& values, const isolation::TrialSteps& steps) {
  const OptionsFile file = options_file_of(values);
  if (file.path.empty()) {
    return;
  }
  const auto handler = values.find("--handler");
  if (handler == values.end() && plugin.handler_count > 1) {
    steps.tell(told_line({"options", "the plugin has " + std::to_string(plugin.handler_count) +
                                         " handlers; say by --handler whose options these are"}));
    return;
  }
  const sluice_handler* const found =
      handler == values.end() ? plugin.handlers[0] : plugin::find_handler(plugin, handler->second);
  if (found == nullptr) {
    return;
  }
  if (const auto job = read_options(file)) {
    const auto bound = plugin::bind_options(*found, *job);
    for (const config::ConfigError& error : bound ? std::vector<config::ConfigError>() : bound.error()) {
      steps.tell(told_line({"options", error.text()}));
    }
  }
}

const sluice_plugin* load(const std::string& file, const isolation::TrialSteps& steps) {
  steps.next("load");
  const plugin::LibraryResult library = plugin::load_library(file);
  if (library.plugin == nullptr) {
    steps.tell(told_finding(refusal_finding(library.loaded ? "table" : "load", library.why)));
  }
  return library.plugin;
}

void look_at_file(const Values& values, const isolation::TrialSteps& steps) {
  const std::string& file = values.at("--file");
  const sluice_plugin* const plugin = load(file, steps);
  if (plugin == nullptr) {
    return;
  }
  steps.tell(told_line({"plugin", plugin->name, plugin->version}));
  for (std::size_t i = 0; i < plugin->handler_count; ++i) {
    const sluice_handler& handler = *plugin->handlers[i];
    steps.next("ask what kind of handler it is: ", handler.name);
    steps.tell(told_line({"handler", handler.name, std::to_string(static_cast<int>(plugin::kind_of(handler)))}));
  }
  look_at_symbols(file, steps);
  look_at_options(*plugin, values, steps);
}

void make_check(const Values& values, const isolation::TrialSteps& steps) {
  const sluice_plugin* const plugin = load(values.at("--file"), steps);
  const sluice_handler* const handler =
      plugin == nullptr ? nullptr : plugin::find_handler(*plugin, values.at("--handler"));
  const Check* const check =
      find_where(handler_checks(), [&values](const Check& one) { return one.name == values.at("--check"); });
  if (handler != nullptr && check != nullptr) {
    Probe probe(*handler, job_for(*handler, values, steps), number_of(values.at("--seed")),
                Duration(static_cast<Duration::rep>(number_of(values.at("--step-limit")))), steps);
    check->run(probe);
  }
}

}  // namespace

config::Parsed<config::JobConfig> read_options(const OptionsFile& file) {
  SLUICE_TRY(text, config::read_config_file(file.path));
  const std::string around = file.is_job ? std::string() : std::string(kJobAround);
  auto job = config::parse_job_config(around + *text, file.path, config::process_environment());
  if (file.is_job) {
    return job;
  }
  if (!job) {
    auto errors = job.error();
    for (config::ConfigError& error : errors) {
      error.place.line -= std::min(error.place.line, kLinesAround);
    }
    return errors;
  }
  for (auto& [name, option] : job->options) {
    option.place.line -= std::min(option.place.line, kLinesAround);
  }
  job->handler_place = {file.path};
  return job;
}

void run_child(const std::vector<std::string>& words) {
  Values values;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    values[words[i]] = words[i + 1];
  }
  const isolation::TrialSteps steps(static_cast<int>(number_of(values["--steps"])));
  limit_process();
  values.count("--check") > 0 ? make_check(values, steps) : look_at_file(values, steps);
  steps.end();
}

}  // namespace sluice::validate
