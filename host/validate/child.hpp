#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"

namespace sluice::validate {

/// The first word of the command line of a process that makes one check.
inline constexpr const char* kChildWord = "--validate-plugin";
/// That process: does what the words behind the first say, and ends the process.
[[noreturn]] void run_child(const std::vector<std::string>& words);

/// A job whose options are those of a file: of a job file, or a table as [job.options] has it.
struct OptionsFile {
  std::string path;  ///< absolute; empty: there is none, and options that are required are made up
  bool is_job = false;
};
config::Parsed<config::JobConfig> read_options(const OptionsFile& file);

}  // namespace sluice::validate
