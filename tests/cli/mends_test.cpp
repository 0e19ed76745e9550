#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/run_binary.hpp"
#include "tests/support/emulator.hpp"

// A message that names a command must name one that does what it says, typed as it stands in the place where the
// message appeared.
namespace sluice::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class Mends : public testing::Test {
 protected:
  void SetUp() override {
    emulator_ = Emulator::start();
    if (emulator_ == nullptr) {
      GTEST_SKIP() << Emulator::absence();
    }
  }

  std::string endpoint() const { return emulator_->endpoint(); }
  std::string host_toml() const {
    return "[store]\nkind = \"dynamodb\"\n[dynamodb]\nregion = \"eu-west-1\"\nendpoint = \"" + endpoint() +
           "\"\n[queues.orders]\ntable = \"the-orders\"\n";
  }

  Finished run(const HostFolder& folder, const Words& words, const std::string& program = {}) const {
    return run_binary(words, {.input = {},
                              .folder = folder.path(),
                              .environment = {{"AWS_ACCESS_KEY_ID", "x"},
                                              {"AWS_SECRET_ACCESS_KEY", "x"},
                                              {"AWS_REGION", "eu-west-1"},
                                              {"AWS_CONFIG_FILE", "/nowhere"},
                                              {"AWS_SHARED_CREDENTIALS_FILE", "/nowhere"}},
                              .stdout_file = {},
                              .program = program});
  }

  /// Types what stands behind `before` on standard error, up to the line's end.
  Finished type(const HostFolder& folder, const Finished& failed, const std::string& before) const {
    const auto at = failed.err.find(before);
    EXPECT_NE(at, std::string::npos) << failed.err;
    if (at == std::string::npos) {
      return {};
    }
    const auto begin = at + before.size();
    return type(folder, failed.err.substr(begin, failed.err.find('\n', begin) - begin));
  }
  Finished type(const HostFolder& folder, const std::string& command) const {
    SCOPED_TRACE(command);
    const std::string path = std::filesystem::path(SLUICE_BINARY).parent_path().string();
    Finished typed = run(folder, {"-c", "PATH=" + path + ":$PATH\n" + command}, "/bin/sh");
    EXPECT_EQ(typed.err, "") << command;
    return typed;
  }

  void expect_mended(const HostFolder& folder, const Words& words, const std::string& program = {}) const {
    const Finished before = run(folder, words, program);
    EXPECT_NE(before.exit_code, 0);
    EXPECT_THAT(before.err, HasSubstr("does not exist in eu-west-1"));
    EXPECT_EQ(type(folder, before, "ake it with: ").exit_code, 0);
    EXPECT_THAT(run(folder, words, program).err, Not(HasSubstr("does not exist")));
  }

 private:
  std::unique_ptr<Emulator> emulator_;
};

TEST_F(Mends, AMissingTableIsMadeWithoutAHostFile) {
  const HostFolder folder("");
  std::filesystem::remove(folder.path() + "/host.toml");
  expect_mended(folder, {"stats", "--queue", "zeroth", "--region", "eu-west-1", "--endpoint-url", endpoint()});
  expect_mended(folder, {"send", "--text", "x", "--table-name", "first", "--endpoint-url", endpoint()});
  expect_mended(folder, {"get", "--id", "x", "--queue", "second", "--endpoint-url", endpoint()});
  expect_mended(
      folder, {"ls", "--queue", "q", "--table-name", "third", "--index-name", "by-time", "--endpoint-url", endpoint()});
  expect_mended(folder, {"table", "check", "--table", "fourth", "--region", "eu-west-1", "--endpoint", endpoint()});
  expect_mended(folder, {"table", "describe", "--table-name", "fifth", "--endpoint-url", endpoint()});
}

TEST_F(Mends, AMissingTableIsMadeFromTheHostFile) {
  const std::string text = host_toml() +
                           "[queues.mails]\ntable = \"mails\"\n[queues.returns]\ntable = \"returns\"\n"
                           "[queues.stock]\ntable = \"stock\"\n";
  const HostFolder folder(text);
  folder.write("my other.toml", text);
  expect_mended(folder, {"stats", "--queue", "orders"});
  expect_mended(folder, {"table", "check", "--queue", "mails"});
  expect_mended(folder, {"receive", "--config", "my other.toml", "--queue", "returns"});
  expect_mended(folder, {"table", "describe", "--config", "my other.toml", "--queue", "stock"});
}

TEST_F(Mends, AMissingTableIsMadeForDynamoMqsUsers) {
  const HostFolder folder("");
  std::filesystem::remove(folder.path() + "/host.toml");
  const std::string program = (std::filesystem::path(SLUICE_BINARY).parent_path() / "dynamomq").string();
  expect_mended(folder, {"qstat", "--table-name", "theirs", "--endpoint-url", endpoint()}, program);
}

TEST_F(Mends, AMissingIndexIsLookedFor) {
  const HostFolder folder(host_toml());
  ASSERT_EQ(run(folder, {"table", "create", "--queue", "orders"}).exit_code, 0);
  folder.write("wrong.toml", host_toml() + "index = \"nobodys\"\n");
  for (const Words& where :
       {Words{"--table-name", "the-orders", "--index-name", "nobodys", "--endpoint-url", endpoint()},
        Words{"--config", "wrong.toml", "--queue", "orders"}}) {
    Words words{"ls"};
    words.insert(words.end(), where.begin(), where.end());
    const Finished failed = run(folder, words);
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_THAT(failed.err, HasSubstr("has no index 'nobodys'"));
    const std::string line = failed.err_lines().at(0);
    const std::string command = line.substr(line.find("sluice table check"));
    const Finished typed = type(folder, command + " --output text");
    EXPECT_EQ(typed.exit_code, 1);
    EXPECT_THAT(
        typed.out,
        HasSubstr("index 'dynamo-mq-index-queue_type-sent_at' has the right keys: name it as the queue's index"));
    EXPECT_THAT(typed.out, Not(HasSubstr("delete it"))) << "not the one that it has just recommended";
  }
}

TEST_F(Mends, ARunThatMissesItsTableSaysHowToMakeIt) {
  const HostFolder folder(host_toml());
  std::filesystem::copy_file(SLUICE_FIXTURE_PLUGIN, folder.path() + "/plugins/fixture.so");
  folder.write("jobs.d/orders.toml", "[job]\nqueue = \"orders\"\nhandler = \"greet\"\n[job.options]\nport = 7\n");
  const Finished refused = run(folder, {"run"});
  EXPECT_EQ(refused.exit_code, 78) << refused.err;
  EXPECT_EQ(type(folder, refused, "make it with: ").exit_code, 0);
  EXPECT_THAT(run(folder, {"ls", "--queue", "orders"}).out, HasSubstr("\"statuses\": []"));
}

TEST_F(Mends, AMisspeltQueueIsToldBeforeItsTableIsMade) {
  const HostFolder folder(host_toml());
  const Finished missed = run(folder, {"get", "--queue", "ordres", "--id", "x"});
  EXPECT_EQ(missed.exit_code, 64);
  ASSERT_EQ(missed.err_lines().size(), 1U) << missed.err;
  EXPECT_THAT(missed.err, HasSubstr("knows a queue \"ordres\"; did you mean \"orders\"?"));
}

// It was nobody's to every command after the one that made it.
TEST_F(Mends, AQueueThatAMessageMadeInALeasedTableIsKnown) {
  const HostFolder folder(host_toml());
  ASSERT_EQ(run(folder, {"table", "create", "--queue", "made"}).exit_code, 0) << "a leased table is for any queue";
  for (const Words& words : {Words{"ls", "made"},
                             {"send", "made", "--text", "x"},
                             {"table", "check", "--queue", "made"},
                             {"table", "describe", "--queue", "made"}}) {
    const Finished refused = run(folder, words);
    EXPECT_EQ(refused.exit_code, 64) << words[1];
    EXPECT_THAT(refused.err, HasSubstr("knows a queue \"made\"")) << words[1];
  }
  const Finished sent = run(folder, {"send", "made", "--create", "--id", "A-1", "--text", "x"});
  EXPECT_EQ(sent.exit_code, 0) << sent.err;
  EXPECT_EQ(sent.err, "");
  for (const Words& words : {Words{"ls", "made"},
                             {"stats", "made"},
                             {"get", "made", "A-1"},
                             {"table", "describe", "--queue", "made"},
                             {"send", "made", "--text", "x"}}) {
    const Finished known = run(folder, words);
    EXPECT_EQ(known.exit_code, 0) << known.err;
    EXPECT_EQ(known.err, "") << words[1];
  }
  EXPECT_EQ(run(folder, {"ls", "maade"}).exit_code, 64);
  // Lists showed what files name alone.
  EXPECT_THAT(run(folder, {"stats"}).out, HasSubstr("\"made\""));
  EXPECT_THAT(run(folder, {"queues"}).out, HasSubstr("\"made\""));
  EXPECT_THAT(run(folder, {"top", "--once", "--output", "text"}).out, HasSubstr("made"));
}

}  // namespace
}  // namespace sluice::test
