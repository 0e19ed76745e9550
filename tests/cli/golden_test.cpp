#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "tests/cli/transcript.hpp"
#include "tests/support/emulator.hpp"

namespace sluice::test {
namespace {

using Words = std::vector<std::string>;

enum class Where { sqlite, dynamodb };

void PrintTo(const Where& where, std::ostream* out) { *out << (where == Where::sqlite ? "sqlite" : "dynamodb"); }

/// One queue, empty, on one of the stores.
class Place {
 public:
  explicit Place(Where where) : where_(where), folder_(std::string()) {
    if (where == Where::sqlite) {
      folder_.write("host.toml", "[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues.orders]\n");
      return;
    }
    emulator_ = Emulator::start();
    if (emulator_ == nullptr) {
      return;
    }
    folder_.write("host.toml", "[store]\nkind = \"dynamodb\"\n[dynamodb]\nregion = \"eu-west-1\"\nendpoint = \"" +
                                   emulator_->endpoint() + "\"\n[queues.orders]\nlayout = \"dynamomq\"\n");
    run_binary({"table", "create", "--queue", "orders"}, options());
  }

  bool missing() const { return where_ == Where::dynamodb && emulator_ == nullptr; }
  std::string endpoint() const { return emulator_ == nullptr ? std::string() : emulator_->endpoint(); }

  BinaryOptions options() const {
    return {.input = {},
            .folder = folder_.path(),
            .environment = {{"AWS_ACCESS_KEY_ID", "x"},
                            {"AWS_SECRET_ACCESS_KEY", "x"},
                            {"AWS_REGION", "eu-west-1"},
                            {"AWS_CONFIG_FILE", "/nowhere"},
                            {"AWS_SHARED_CREDENTIALS_FILE", "/nowhere"}},
            .stdout_file = {}};
  }
  BinaryOptions drop_in_options() const {
    BinaryOptions options = this->options();
    options.program = (std::filesystem::path(SLUICE_BINARY).parent_path() / "dynamomq").string();
    return options;
  }

 private:
  Where where_;
  HostFolder folder_;
  std::unique_ptr<Emulator> emulator_;
};

class Golden : public testing::TestWithParam<Where> {
 protected:
  std::string suffix() const { return GetParam() == Where::sqlite ? "_sqlite" : "_dynamodb"; }
};

INSTANTIATE_TEST_SUITE_P(Stores, Golden, testing::Values(Where::sqlite, Where::dynamodb),
                         testing::PrintToStringParamName());

/// What an operator types on a bad night, shown in both ways.
void look_around(Transcript& transcript, const Words& extra) {
  const auto run = [&](Words words) {
    words.insert(words.end(), extra.begin(), extra.end());
    transcript.run(words);
  };
  run({"ls"});
  run({"stats"});
  run({"dlq"});
  run({"receive"});
  run({"enqueue-test"});
  run({"ls", "--limit", "2"});
  run({"get", "--id", "A-101"});
  run({"get", "--id", "nobody"});
  for (const char* id : {"A-202", "A-303"}) {
    run({"invalid", "--id", id, "--reason", "no such <customer> & more"});
  }
  run({"invalid", "--id", "A-202"});
  run({"invalid", "--id", "nobody"});
  run({"dlq"});
  run({"ls", "--dlq"});
  run({"get", "--id", "A-202"});
  run({"stats"});
  run({"reset", "--id", "A-303"});
  run({"reset", "--id", "nobody"});
  transcript.quietly({"delete", "--id", "A-303"});
  transcript.quietly({"delete", "--id", "A-404"});
  run({"receive", "--visibility-timeout", "1h"});
  run({"receive"});
  run({"stats"});
  run({"ls"});
  run({"fail", "--id", "A-101"});
  run({"fail", "--id", "nobody"});
  run({"receive", "--dlq"});
}

TEST_P(Golden, LooksAsJson) {
  const Place place(GetParam());
  if (place.missing()) {
    GTEST_SKIP() << Emulator::absence();
  }
  Transcript transcript("sluice", place.options());
  transcript.hide(place.endpoint(), "http://127.0.0.1:PORT");
  look_around(transcript, {});
  expect_golden("look_json" + suffix(), transcript.text());
}

TEST_P(Golden, LooksAsText) {
  const Place place(GetParam());
  if (place.missing()) {
    GTEST_SKIP() << Emulator::absence();
  }
  Transcript transcript("sluice", place.options());
  transcript.hide(place.endpoint(), "http://127.0.0.1:PORT");
  look_around(transcript, {"--output", "text"});
  EXPECT_EQ(transcript.text().find('\x1b'), std::string::npos) << "no terminal, no colour";
  expect_golden("look_text" + suffix(), transcript.text());
}

/// Conformance 63: every command of DynamoMQ's with success and with a client's error.
TEST_P(Golden, AnswersAsDynamoMq) {
  const Place place(GetParam());
  if (place.missing()) {
    GTEST_SKIP() << Emulator::absence();
  }
  const Words where = GetParam() == Where::sqlite ? Words{"--config", "host.toml", "--queue", "orders"}
                                                  : Words{"--table-name", "orders", "--endpoint-url", place.endpoint()};
  Transcript transcript("dynamomq", place.drop_in_options());
  transcript.hide(place.endpoint(), "http://127.0.0.1:PORT");
  const auto run = [&](Words words) {
    words.insert(words.end(), where.begin(), where.end());
    transcript.run(words);
  };
  for (const Words& words : std::vector<Words>{{"ls"},
                                               {"qstat"},
                                               {"dlq"},
                                               {"purge"},
                                               {"receive"},
                                               {"enqueue-test"},
                                               {"ls"},
                                               {"qstat"},
                                               {"get", "--id", "A-101"},
                                               {"get", "--id", "nobody"},
                                               {"get"},
                                               {"delete", "--id", "A-404"},
                                               {"delete", "--id", "A-404"},
                                               {"delete"},
                                               {"invalid", "--id", "A-202"},
                                               {"invalid", "--id", "A-202"},
                                               {"invalid", "--id", "nobody"},
                                               {"dlq"},
                                               {"redrive", "--id", "A-101"},
                                               {"redrive", "--id", "A-202"},
                                               {"redrive", "--id", "nobody"},
                                               {"redrive"},
                                               {"reset", "--id", "A-303"},
                                               {"reset", "--id", "nobody"},
                                               {"delete", "--id", "A-202"},
                                               {"delete", "--id", "A-303"},
                                               {"receive"},
                                               {"qstat"},
                                               {"ls"},
                                               {"fail", "--id", "A-101"},
                                               {"fail", "--id", "nobody"},
                                               {"fail"},
                                               {"invalid", "--id", "A-101"},
                                               {"enqueue-test"},
                                               {"purge"},
                                               {"ls"}}) {
    run(words);
  }
  expect_golden("dynamomq" + suffix(), transcript.text());
}

/// Without a host file only a table that is named is meant, in AWS's usual environment.
TEST(GoldenWithoutHostFile, WorksOnTheTableThatIsNamed) {
  const auto emulator = Emulator::start();
  if (emulator == nullptr) {
    GTEST_SKIP() << Emulator::absence();
  }
  const HostFolder folder{std::string()};
  const BinaryOptions options{.input = {},
                              .folder = folder.path(),
                              .environment = {{"AWS_ACCESS_KEY_ID", "x"},
                                              {"AWS_SECRET_ACCESS_KEY", "x"},
                                              {"AWS_REGION", "eu-west-1"},
                                              {"AWS_ENDPOINT_URL_DYNAMODB", emulator->endpoint()}},
                              .stdout_file = {}};
  Transcript transcript("sluice", options);
  transcript.hide(emulator->endpoint(), "http://127.0.0.1:PORT");
  transcript.run({"purge", "--yes"});
  transcript.run({"ls", "--table", "jobs"});
  transcript.quietly({"table", "create", "--table", "jobs", "--endpoint", emulator->endpoint()});
  transcript.quietly(
      {"table", "create", "--table", "other", "--index", "own-index", "--endpoint", emulator->endpoint()});
  transcript.run({"enqueue-test", "--table", "jobs"});
  transcript.run({"stats", "--table", "jobs", "--output", "text"});
  transcript.run({"stats", "--queue", "other", "--index", "own-index", "--output", "text"});
  transcript.run({"stats", "--table-name", "other", "--index-name", "own-index", "--output", "text"});
  transcript.run({"stats", "--table", "other", "--output", "text"});
  transcript.run({"ls", "--table", "t", "--config", "host.toml"});
  transcript.run({"ls", "--endpoint", emulator->endpoint(), "--limit", "1", "--output", "text"});
  expect_golden("without_host_file", transcript.text());
}

}  // namespace
}  // namespace sluice::test
