#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/mutex.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::plugin {

using test::FakeClock;

/// Gathers what handlers log.
class LogRecord {
 public:
  struct Line {
    sluice_log_level level;
    std::string job;
    std::string id;
    std::string text;
  };

  HandlerLog log() {
    return [this](sluice_log_level level, std::string_view job, std::string_view id, std::string_view text) {
      const MutexLock lock(mutex_);
      lines_.push_back({level, std::string(job), std::string(id), std::string(text)});
    };
  }
  std::vector<Line> lines() const {
    const MutexLock lock(mutex_);
    return lines_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<Line> lines_ SLUICE_GUARDED_BY(mutex_);
};

inline std::string fixture_file(const std::string& name) { return std::string(SLUICE_TEST_PLUGINS "/") + name + ".so"; }

/// The only handler of a fixture.
inline const sluice_handler& fixture_handler(const std::string& name) {
  const LibraryResult result = load_library(fixture_file(name));
  if (result.plugin == nullptr) {
    ADD_FAILURE() << result.why;
    std::abort();
  }
  return *result.plugin->handlers[0];
}

/// A job file with these options, all on line 9.
inline config::JobConfig job_with(const std::map<std::string, config::OptionValue>& options) {
  config::JobConfig job;
  job.file = "jobs.d/test.toml";
  job.handler_place = {job.file, 4, 1};
  for (const auto& [name, value] : options) {
    job.options[name] = {value, {job.file, 9, 3}};
  }
  return job;
}

/// An instance of a fixture, with everything that it needs to be called.
class Bundle {
 public:
  explicit Bundle(const std::string& fixture, const std::map<std::string, config::OptionValue>& options = {}) {
    const sluice_handler& handler = fixture_handler(fixture);
    auto bound = bind_options(handler, job_with(options));
    if (!bound) {
      error = bound.error().front().message;
      return;
    }
    auto created = HandlerInstance::create({log.log()}, handler, "orders", *bound);
    if (created) {
      instance = std::move(*created);
    } else {
      error = created.error().message();
    }
  }

  Outcome handle(const queue::Message& message) { return instance->handle({message, "orders", 5, attempt}); }
  Outcome handle(const std::string& body = "") {
    queue::Message message;
    message.id = "A-101";
    message.body = body;
    message.attempt = 1;
    return handle(message);
  }

  LogRecord log;
  FakeClock clock;
  Attempt attempt{clock};
  std::unique_ptr<HandlerInstance> instance;
  std::string error;  ///< why there is no instance
};

/// A folder that is gone at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-plugin-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// Runs the statements in a process of its own, which must end by itself and without a failed expectation.
#define IN_OWN_PROCESS(...)                             \
  EXPECT_EXIT(                                          \
      {                                                 \
        __VA_ARGS__;                                    \
        ::_exit(::testing::Test::HasFailure() ? 1 : 0); \
      },                                                \
      ::testing::ExitedWithCode(0), "")

}  // namespace sluice::plugin
