#pragma once

#include <string>
#include <vector>

/// A program and its arguments, found once when the job starts.
struct Command {
  std::string program;                 ///< a path
  std::vector<std::string> arguments;  ///< from argv[0] on
};

/// Finds the program of `words`: as a path when it has a slash (relative to `folder`, unless that is empty), else in
/// the folders of `search_path`. With `shell`, the first word is a script for /bin/sh and the others are its $1, $2 and
/// so on. Throws std::invalid_argument with a sentence for the user when there is nothing to run.
Command find_command(const std::vector<std::string>& words, bool shell, const std::string& folder,
                     const std::string& search_path);
