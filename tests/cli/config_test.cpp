#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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

// `sluice purge --yes` emptied DynamoMQ's table, which nobody had named.
TEST(HostFile, WhenThereIsNoneNoTableIsMeantThatNobodyNames) {
  const HostFolder folder("");
  const BinaryOptions aws{.input = {},
                          .folder = folder.path(),
                          .environment = {{"AWS_ACCESS_KEY_ID", "test"},
                                          {"AWS_SECRET_ACCESS_KEY", "test"},
                                          {"AWS_REGION", "eu-west-1"},
                                          {"AWS_ENDPOINT_URL", "http://127.0.0.1:1"}},
                          .stdout_file = {}};
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"purge", "--yes"},
                                                                                     {"purge", "--queue", "q", "--yes"},
                                                                                     {"stats"},
                                                                                     {"ls"},
                                                                                     {"hosts"},
                                                                                     {"send", "--data", "1"},
                                                                                     {"shell"}}) {
    const Finished refused = run_binary(words, aws);
    EXPECT_EQ(refused.exit_code, 78) << words.front();
    EXPECT_EQ(refused.err, "sluice " + words.front() +
                               ": no host file: there is neither host.toml in this folder nor /etc/sluice/host.toml; "
                               "name one with --config FILE or the variable SLUICE_CONFIG, or a table in DynamoDB with "
                               "--table TABLE\n");
  }
  EXPECT_THAT(run_binary({"move", "--from", "tab", "--to", "tub", "--yes"}, aws).err, HasSubstr("--region REGION"));
  const Finished unnamed = run_binary({"purge", "--yes", "--region", "eu-west-1"}, aws);
  EXPECT_EQ(unnamed.exit_code, 64);
  EXPECT_THAT(unnamed.err, HasSubstr("which table? Write --table TABLE"));
  EXPECT_THAT(run_binary({"purge", "--yes", "--table", "mine"}, aws).err, HasSubstr("127.0.0.1"));
  EXPECT_THAT(run_binary({"ls", "--queue", "mine", "--region", "eu-west-1"}, aws).err, HasSubstr("127.0.0.1"));
}

// `sluice move --endpoint URL` went to the host file's place without a word.
TEST(HostFile, WhatTheCommandLineSaysOfATableWinsOverItForAMoveToo) {
  const HostFolder folder(
      "[store]\nkind = \"sqlite\"\npath = \"s.db\"\n[queues.old]\n[stores.cloud]\nkind = \"dynamodb\"\n"
      "region = \"eu-west-1\"\nendpoint = \"http://127.0.0.1:1\"\n[queues.new]\nstore = \"cloud\"\n");
  const Finished moved = run_binary({"move", "old", "new", "--yes", "--endpoint", "http://127.0.0.1:2"},
                                    {.input = {},
                                     .folder = folder.path(),
                                     .environment = {{"AWS_ACCESS_KEY_ID", "x"}, {"AWS_SECRET_ACCESS_KEY", "x"}},
                                     .stdout_file = {}});
  EXPECT_EQ(moved.exit_code, 1);
  EXPECT_THAT(moved.err, HasSubstr("127.0.0.1:2"));
}

TEST(OutboxConvert, WritesAllOfItsFilesOrNone) {
  const HostFolder folder;
  folder.write("worker.yaml",
               "database:\n  uri: mysql://u:p@tcp(db:3306)/shop\n  username: u\n  password: p\n"
               "outbox:\n  producerName: shop\npublisher:\n  nats:\n    server: nats://localhost:4222\n");
  std::filesystem::create_directory(folder.path() + "/new");
  folder.write("new/jobs.d", "where a folder should be");
  const Finished failed = folder.run({"outbox", "convert", "worker.yaml", "--output", "new"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.err_lines().size(), 1U) << failed.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/new/host.toml")) << "and nobody knew of it";
  std::filesystem::remove(folder.path() + "/new/jobs.d");
  EXPECT_EQ(folder.run({"outbox", "convert", "worker.yaml", "--output", "new"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/new/host.toml"));
}

TEST(HostFile, IsWhatConfigOrTheVariableNames) {
  const HostFolder folder("");
  folder.write("other.toml", "[store]\nkind = \"sqlite\"\npath = \"other.db\"\n[queues.q]\n");
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
  const HostFolder folder("[store]\nkind = \"sqlite\"\npath = \"/proc/nowhere/sluice.db\"\n[queues.q]\n");
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
