#pragma once

#include <array>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::test {

/// What a shell command printed, on both of its streams, and how it ended.
struct CommandResult {
  int status = -1;
  std::string output;
};

inline CommandResult run(const std::string& command) {
  CommandResult result;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return result;
  }
  std::array<char, 4096> buffer{};
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), size);
  }
  result.status = ::pclose(pipe);
  return result;
}

/// The names of the symbols that a shared object exports.
inline std::vector<std::string> exported_symbols(const std::string& file) {
  std::istringstream lines(run(std::string(SLUICE_NM) + " -D --defined-only --format=posix '" + file + "'").output);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    names.push_back(line.substr(0, line.find(' ')));
  }
  return names;
}

}  // namespace sluice::test
