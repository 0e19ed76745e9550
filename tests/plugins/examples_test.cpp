#include <cstdlib>
#include <type_traits>

#include "config/config.hpp"
#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

OptionMap options_of(const config::JobConfig& job) {
  OptionMap options;
  for (const auto& [name, option] : job.options) {
    std::visit([&, key = name](const auto& value) { options.emplace(key, testing::OptionValue(value)); }, option.value);
  }
  return options;
}

// The shipped example jobs, given to the shipped plugins.
TEST(ExampleJobs, AreTakenByTheirPlugins) {
  const std::string file = std::string(SLUICE_SOURCE_DIR) + "/config/examples/host.toml";
  const auto nothing = [](const std::string&) -> std::optional<std::string> { return std::nullopt; };
  const auto host = config::load_host_config(file, nothing);
  ASSERT_TRUE(host.has_value());
  const config::JobFiles files = config::load_job_files(*host, nothing);
  ASSERT_TRUE(files.errors.empty());
  for (const config::JobConfig& job : files.jobs) {
    EXPECT_EQ(creation_error(job.handler, options_of(job)), "") << job.file;
  }
  EXPECT_EQ(files.jobs.size(), 7U);
}

TEST(ShippedPlugins, DocumentThemselves) {
  for (const char* name : {"log", "verify-file", "exec", "webhook", "nats", "sns", "queue"}) {
    const sluice_handler& handler = handler_of(name);
    ASSERT_NE(handler.help, nullptr) << name;
    EXPECT_EQ(handler.flags & SLUICE_HANDLER_OPEN_OPTIONS, 0U) << name;
    EXPECT_GT(handler.option_count, 0U) << name;
    for (std::size_t i = 0; i < handler.option_count; ++i) {
      EXPECT_GT(std::string(handler.options[i]->help).size(), 10U) << name << "." << handler.options[i]->name;
    }
  }
}

}  // namespace
}  // namespace sluice::shipped
