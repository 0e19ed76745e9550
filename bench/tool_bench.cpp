// What do the commands that people use take, each in a process of its own as they start it?
//
//   tool_bench [--messages N] [--store sqlite|dynamodb] [--folder DIR]
//
// 1. `sluice send -`: JSON lines of 78 bytes from a file into a queue.
// 2. `sluice run --until-empty`: the same messages, worked off by a handler that does next to nothing; from the start
// of
//    the process to its end.

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/wake_host.hpp"

namespace sluice::bench {
namespace {

struct Options {
  std::size_t messages = 1'000'000;
  Store store = Store::sqlite;
  std::string folder = std::filesystem::temp_directory_path().string();
};

void write_lines(const std::string& path, std::size_t count) {
  std::ofstream lines(path);
  for (std::size_t i = 0; i < count; ++i) {
    char line[100];
    std::snprintf(line, sizeof line, R"({"number": %9zu, "text": "seventy-eight bytes with the end of the line"})", i);
    lines << line << '\n';
  }
}

void measure(const char* what, std::size_t messages, const std::vector<std::string>& arguments,
             const std::string& input) {
  const std::int64_t begin = monotonic_now();
  const rusage usage = run_to_end(arguments, input);
  const double seconds = static_cast<double>(monotonic_now() - begin) / 1e9;
  const auto count = static_cast<double>(messages);
  std::printf("%-26s %9.0f a second, %6.2f us of processor each, %.0f MiB resident at most\n", what, count / seconds,
              processor_seconds(usage) * 1e6 / count, static_cast<double>(usage.ru_maxrss) / 1024);
  std::fflush(stdout);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--messages") {
      options.messages = std::stoul(value);
    } else if (name == "--store") {
      options.store = value == "dynamodb" ? Store::dynamodb : Store::sqlite;
    } else if (name == "--folder") {
      options.folder = value;
    } else {
      throw std::runtime_error("unknown option " + name);
    }
  }
  return options;
}

void run(const Options& options) {
  std::string folder = options.folder + "/sluice-tool-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder in " + options.folder);
  }
  const std::string lines = folder + "/lines";
  write_lines(lines, options.messages);
  const WakeHost host(folder, options.store, 1, 0);
  const std::string config = folder + "/host.toml";
  measure("sluice send -", options.messages, {SLUICE_PROGRAM, "send", "--queue", "bench", "--config", config, "-"},
          lines);
  measure("sluice run --until-empty", options.messages, {SLUICE_PROGRAM, "run", "--until-empty", "--config", config},
          "/dev/null");
  if (host.handled() != options.messages) {
    throw std::runtime_error("not every message was handled once");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) try {
  sluice::bench::run(sluice::bench::parse(argc, argv));
  return 0;
} catch (const std::exception& error) {
  std::cerr << "tool_bench: " << error.what() << '\n';
  return 1;
}
