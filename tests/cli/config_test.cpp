#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(HostFile, WhenThereIsNoneSaysWhereItLooked) {
  const HostFolder folder("");
  for (const char* command : {"run", "check", "plugins"}) {
    const Finished finished = folder.run({command});
    EXPECT_EQ(finished.exit_code, 78) << command;
    EXPECT_EQ(finished.err,
              "sluice " + std::string(command) +
                  ": no host file: there is neither host.toml in this folder nor /etc/sluice/host.toml; name one with "
                  "--config FILE or the variable SLUICE_CONFIG\n");
    EXPECT_EQ(finished.out, "");
  }
}

TEST(HostFile, WhenThereIsNoneACommandOnAQueueMeansATable) {
  const HostFolder folder("");
  const Finished finished =
      run_binary({"stats"}, {.input = {},
                             .folder = folder.path(),
                             .environment = {{"AWS_CONFIG_FILE", "/nowhere"}, {"AWS_EC2_METADATA_DISABLED", "true"}},
                             .stdout_file = {}});
  EXPECT_EQ(finished.exit_code, 78);
  EXPECT_EQ(finished.out, "");
  ASSERT_EQ(finished.err_lines().size(), 1U);
  EXPECT_THAT(finished.err, HasSubstr("AWS_REGION"));
  EXPECT_THAT(finished.err,
              HasSubstr("there is no host file, so a DynamoDB table is meant; --config FILE names a host"));
}

TEST(HostFile, IsWhatConfigOrTheVariableNames) {
  const HostFolder folder("");
  folder.write("other.toml", "[store]\nkind = \"sqlite\"\npath = \"other.db\"\n");
  EXPECT_EQ(folder.run({"stats", "--queue", "q", "--config", "other.toml"}).exit_code, 0);
  const BinaryOptions by_variable{
      .input = {}, .folder = folder.path(), .environment = {{"SLUICE_CONFIG", "other.toml"}}, .stdout_file = {}};
  EXPECT_EQ(run_binary({"stats", "--queue", "q"}, by_variable).exit_code, 0);
  const BinaryOptions wrong{
      .input = {}, .folder = folder.path(), .environment = {{"SLUICE_CONFIG", "nowhere.toml"}}, .stdout_file = {}};
  EXPECT_EQ(run_binary({"stats", "--queue", "q", "--config", "other.toml"}, wrong).exit_code, 0) << "--config wins";
  const Finished lost = run_binary({"stats"}, wrong);
  EXPECT_EQ(lost.exit_code, 78);
  EXPECT_EQ(lost.err, "sluice stats: there is no host file nowhere.toml, which SLUICE_CONFIG names; mend the name\n");
}

TEST(HostFile, ErrorsComeAllAtOnceWithTheirPlaces) {
  const HostFolder folder("[hots]\n[store]\nkind = \"mysql\"\n");
  const Finished finished = folder.run({"ls", "--queue", "q"});
  EXPECT_EQ(finished.exit_code, 78);
  EXPECT_THAT(finished.err_lines(), ElementsAre(AllOf(StartsWith("sluice ls: host.toml:1:"), HasSubstr("hots")),
                                                AllOf(StartsWith("sluice ls: host.toml:3:"), HasSubstr("mysql"))));
}

TEST(HostFile, ThatCannotBeReadIsAConfigurationError) {
  const HostFolder folder;
  const Finished finished = folder.run({"stats", "--config", "jobs.d"});
  EXPECT_EQ(finished.exit_code, 78);
  EXPECT_EQ(finished.err_lines().size(), 1U) << finished.err;
}

TEST(Store, ThatCannotBeOpenedFailsWithOneLine) {
  const HostFolder folder("[store]\nkind = \"sqlite\"\npath = \"/proc/nowhere/sluice.db\"\n");
  const Finished finished = folder.run({"send", "--queue", "q", "--data", "1"});
  EXPECT_EQ(finished.exit_code, 1);
  ASSERT_EQ(finished.err_lines().size(), 1U) << finished.err;
  EXPECT_THAT(finished.err, AllOf(StartsWith("sluice send: "), HasSubstr("/proc/nowhere")));
}

TEST(Run, WithoutAJobIsAConfigurationError) {
  const HostFolder folder;
  const Finished finished = folder.run({"run", "--until-empty"});
  EXPECT_EQ(finished.exit_code, 78);
  EXPECT_EQ(finished.err_lines().size(), 1U) << finished.err;
  EXPECT_EQ(finished.out, "");
}

}  // namespace
}  // namespace sluice::test
