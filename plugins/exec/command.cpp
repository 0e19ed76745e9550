#include "command.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>
#include <string_view>

namespace {

bool is_executable(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string search(const std::string& name, std::string_view search_path) {
  while (true) {
    const std::size_t end = search_path.find(':');
    const std::string folder(search_path.substr(0, end));
    // An empty folder would mean the current one; a queue's messages shall not depend on where the host was started.
    if (!folder.empty() && is_executable(folder + "/" + name)) {
      return folder + "/" + name;
    }
    if (end == std::string_view::npos) {
      return {};
    }
    search_path.remove_prefix(end + 1);
  }
}

}  // namespace

Command find_command(const std::vector<std::string>& words, bool shell, const std::string& folder,
                     const std::string& search_path) {
  if (words.empty() || words.front().empty()) {
    throw std::invalid_argument(R"(the option "command" is empty; write it as ["program", "argument"])");
  }
  for (const std::string& word : words) {
    if (word.find('\0') != std::string::npos) {
      throw std::invalid_argument("the option \"command\" has a zero byte in it");
    }
  }
  if (shell) {
    // The word after the script is its $0.
    std::vector<std::string> arguments{"sh", "-c", words.front(), "sh"};
    arguments.insert(arguments.end(), words.begin() + 1, words.end());
    return {"/bin/sh", std::move(arguments)};
  }
  const std::string& name = words.front();
  if (name.find('/') == std::string::npos) {
    const std::string program = search(name, search_path);
    if (program.empty()) {
      throw std::invalid_argument("the command \"" + name + "\" is in no folder of PATH, which is \"" + search_path +
                                  "\"; name it with its folder, or set PATH in the option \"env\"");
    }
    return {program, words};
  }
  const std::string seen_from_here = name.front() == '/' || folder.empty() ? name : folder + "/" + name;
  if (!is_executable(seen_from_here)) {
    throw std::invalid_argument("the command \"" + seen_from_here + "\" is not an executable file");
  }
  return {name, words};
}
