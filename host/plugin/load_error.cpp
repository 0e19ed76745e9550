#include "host/plugin/load_error.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace sluice::plugin {

namespace {

/// "shape(int)" of "_Z5shapei"; the same text when it is no mangled name.
std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                    &std::free);
  return status == 0 && name ? std::string(name.get()) : symbol;
}

/// What stands between `text` and the next character of `ends`; empty when `text` is not there.
std::string_view after(std::string_view said, std::string_view text, std::string_view ends) {
  const std::size_t found = said.find(text);
  if (found == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = said.substr(found + text.size());
  return rest.substr(0, rest.find_first_of(ends));
}

}  // namespace

std::string explain_load_error(const std::string& file, std::string_view said) {
  if (const std::string_view symbol = after(said, "undefined symbol: ", " \t\n,"); !symbol.empty()) {
    return "needs the symbol \"" + readable(std::string(symbol)) +
           "\", which no library has: link the one that defines it (LIBRARIES of sluice_add_plugin)";
  }
  if (const std::string_view version = after(said, "version `", "'"); !version.empty()) {
    return "needs " + std::string(version) +
           ", which this system does not have: build it on this system or an older one";
  }
  const std::size_t missing = said.find(": cannot open shared object file");
  if (missing != std::string_view::npos && said.substr(0, missing) != file) {
    return "needs the library " + std::string(said.substr(0, missing)) + ", which cannot be opened: install it";
  }
  if (said.starts_with(file + ": ")) {
    said.remove_prefix(file.size() + 2);
  }
  std::string text = "cannot be loaded: " + std::string(said);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace sluice::plugin
