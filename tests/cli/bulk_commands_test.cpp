// The commands that change messages, one or many, through the real binary on both stores.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/cli/run_binary.hpp"
#include "tests/support/emulator.hpp"

namespace sluice::test {
namespace {

namespace json = boost::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Words = std::vector<std::string>;

enum class Where { sqlite, dynamodb };

void PrintTo(const Where& where, std::ostream* out) { *out << (where == Where::sqlite ? "sqlite" : "dynamodb"); }

class BulkCommands : public testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    std::string store = "[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n";
    if (GetParam() == Where::dynamodb) {
      emulator_ = Emulator::start();
      if (emulator_ == nullptr) {
        GTEST_SKIP() << Emulator::absence();
      }
      store = "[store]\nkind = \"dynamodb\"\n[dynamodb]\nregion = \"eu-west-1\"\nendpoint = \"" +
              emulator_->endpoint() + "\"\n";
    }
    folder_.write("host.toml", store + "[queues.orders]\n" + (emulator_ ? "layout = \"dynamomq\"\n" : ""));
    if (emulator_ != nullptr) {
      const Finished created = run({"table", "create", "--queue", "orders"});
      ASSERT_EQ(created.exit_code, 0) << created.err;
    }
  }

  BinaryOptions options(std::map<std::string, std::string> more = {}) const {
    more.insert({{"AWS_ACCESS_KEY_ID", "x"},
                 {"AWS_SECRET_ACCESS_KEY", "x"},
                 {"AWS_CONFIG_FILE", "/nowhere"},
                 {"AWS_SHARED_CREDENTIALS_FILE", "/nowhere"},
                 {"TMPDIR", folder_.path()}});
    return {.input = {}, .folder = folder_.path(), .environment = std::move(more), .stdout_file = {}};
  }

  Finished run(const Words& words, std::map<std::string, std::string> environment = {}) const {
    return run_binary(words, options(std::move(environment)));
  }

  json::value json_of(const Words& words) const {
    const Finished finished = run(words);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.exit_code == 0 ? json::parse(finished.out) : json::value();
  }

  /// Sends A-0, A-1, ... with {"n": 0, "type": "odd" or "even"}.
  void send(int count) const {
    for (int number = 0; number < count; ++number) {
      const Finished sent =
          run({"send", "--id", id(number), "--data",
               "{\"n\": " + std::to_string(number) + ".0, \"type\": \"" + (number % 2 == 0 ? "even" : "odd") + "\"}"});
      ASSERT_EQ(sent.exit_code, 0) << sent.err;
    }
  }
  void send_lines(int count) const {
    std::string lines;
    for (int number = 0; number < count; ++number) {
      lines += std::to_string(number) + "\n";
    }
    BinaryOptions with_input = options();
    with_input.input = lines;
    ASSERT_EQ(run_binary({"send", "-"}, with_input).exit_code, 0);
  }

  static std::string id(int number) { return "A-" + std::to_string(number); }

  static std::vector<std::string> texts(const json::value& list) {
    std::vector<std::string> found;
    if (list.is_array()) {
      for (const auto& item : list.as_array()) {
        found.emplace_back(item.as_string());
      }
    }
    return found;
  }

  /// The ids in order, in whatever state.
  std::vector<std::string> ids(const Words& more = {}) const {
    Words words{"peek", "--any-state", "--limit", "1000"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<std::string> found;
    const json::value listed = json_of(words);
    for (const auto& message : listed.is_array() ? listed.as_array() : json::array()) {
      found.emplace_back(message.at("id").as_string());
    }
    return found;
  }

  /// An editor that runs this script with the file as $1; the value for EDITOR.
  std::string editor(const std::string& script) const {
    folder_.write("editor.sh", "set -e\n" + script + "\n");
    return "sh " + folder_.path() + "/editor.sh";
  }

  std::vector<std::string> left_files() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().starts_with("sluice-edit-")) {
        found.push_back(entry.path());
      }
    }
    return found;
  }

  HostFolder folder_{std::string()};
  std::unique_ptr<Emulator> emulator_;
};

INSTANTIATE_TEST_SUITE_P(Stores, BulkCommands, testing::Values(Where::sqlite, Where::dynamodb),
                         testing::PrintToStringParamName());

TEST_P(BulkCommands, PurgeTakesWhatTheFilterMatches) {
  send(6);
  const json::value dry = json_of({"purge", "--where", "data.type = 'odd'", "--dry-run"});
  EXPECT_THAT(texts(dry.at("matches")), ElementsAre("A-1", "A-3", "A-5"));
  EXPECT_EQ(dry.at("matched").as_int64(), 3);
  EXPECT_EQ(ids().size(), 6U);
  if (GetParam() == Where::dynamodb) {
    EXPECT_EQ(dry.at("cost").at("write_units").as_double(), 6.0);
    EXPECT_EQ(dry.at("cost").at("requests").as_int64(), 2);
    EXPECT_EQ(dry.at("cost").at("spent_requests").as_int64(), 1);
    EXPECT_GT(dry.at("cost").at("spent_read_units").as_double(), 0);
  } else {
    EXPECT_TRUE(dry.at("cost").is_null());
  }
  const json::value purged = json_of({"purge", "--where", "data.type = 'odd'", "--yes"});
  EXPECT_THAT(texts(purged.at("successes")), ElementsAre("A-1", "A-3", "A-5"));
  EXPECT_TRUE(purged.at("failures").as_array().empty());
  EXPECT_EQ(purged.at("removed").as_int64(), 3);
  EXPECT_THAT(ids(), ElementsAre("A-0", "A-2", "A-4"));
  EXPECT_EQ(json_of({"purge", "--yes"}).at("removed").as_int64(), 3);
  EXPECT_TRUE(json_of({"purge", "--yes"}).at("successes").as_array().empty());
}

TEST_P(BulkCommands, PurgeOfIdsRemovesTheseAlone) {
  send(4);
  EXPECT_EQ(json_of({"purge", "A-1", "A-3", "--dry-run"}).at("matched").as_int64(), 2);
  EXPECT_THAT(ids(), ElementsAre("A-0", "A-1", "A-2", "A-3"));
  EXPECT_EQ(run({"purge", "A-1"}).exit_code, 0) << "one that is named is asked about by nobody";
  EXPECT_THAT(ids(), ElementsAre("A-0", "A-2", "A-3"));
  EXPECT_THAT(texts(json_of({"purge", "A-3", "--id", "A-0"}).at("successes")), ElementsAre("A-3", "A-0"));
  EXPECT_THAT(ids(), ElementsAre("A-2"));
  EXPECT_THAT(run({"purge", ""}).err, HasSubstr("an empty word stands where ID should"));
  EXPECT_THAT(ids(), ElementsAre("A-2")) << "an empty word is not everything";
}

TEST_P(BulkCommands, TextOutputIsALineForEachMessage) {
  send(2);
  EXPECT_EQ(run({"receive"}).exit_code, 0);
  const Finished finished = run({"purge", "--older-than", "0s", "--yes", "--output", "text"});
  EXPECT_THAT(finished.out_lines(),
              ElementsAre(HasSubstr("skipped  A-0  is in flight until 2"), "removed  A-1", "1 removed, 1 skipped"));
  EXPECT_THAT(run({"purge", "--dry-run", "--output", "text"}).out,
              AllOf(HasSubstr("would remove  A-0  is in flight\n"), HasSubstr("would remove 1, 0 skipped")))
      << "without a filter it takes what is in flight too";
}

TEST_P(BulkCommands, RedriveOneSomeAndAll) {
  send(4);
  for (int number = 0; number < 4; ++number) {
    ASSERT_EQ(run({"invalid", "--id", id(number)}).exit_code, 0);
  }
  const json::value one = json_of({"redrive", "--id", "A-0"});
  EXPECT_EQ(one.at("queue_type").as_string(), "STANDARD");
  EXPECT_EQ(one.at("receive_count").as_int64(), 0);
  EXPECT_EQ(run({"redrive", "--id", "A-0"}).exit_code, 1) << "not in the DLQ any more";
  EXPECT_THAT(texts(json_of({"redrive", "--where", "data.n = 3", "--yes"}).at("successes")), ElementsAre("A-3"));
  EXPECT_EQ(run({"redrive"}).exit_code, 64);
  EXPECT_EQ(run({"redrive", "--all"}).exit_code, 64) << "nobody to ask";
  EXPECT_EQ(run({"redrive", "--all", "--where", "data.n = 3", "--yes"}).exit_code, 64);
  EXPECT_EQ(run({"redrive", "--id", "A-1", "--all"}).exit_code, 64);
  EXPECT_EQ(json_of({"redrive", "--all", "--limit", "1", "--yes"}).at("redriven").as_int64(), 1);
  EXPECT_EQ(json_of({"redrive", "--all", "--yes"}).at("redriven").as_int64(), 1);
  EXPECT_EQ(ids().size(), 4U);
  EXPECT_THAT(ids({"--dlq"}), IsEmpty());
}

TEST_P(BulkCommands, DeleteOneAndSome) {
  send(4);
  const Finished one = run({"delete", "--id", "A-2"});
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(json::parse(one.out).at("result").as_string(), "removed");
  const Finished none = run({"delete", "--id", "A-2"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("no message \"A-2\""));
  EXPECT_EQ(run({"purge", "orders", "A-2"}).exit_code, 1);
  EXPECT_EQ(run({"delete", "--yes"}).exit_code, 64);
  EXPECT_THAT(texts(json_of({"delete", "--where", "id in ('A-1', 'A-9')", "--yes"}).at("successes")),
              ElementsAre("A-1"));
  EXPECT_THAT(ids(), ElementsAre("A-0", "A-3"));
}

TEST_P(BulkCommands, WhatIsADeadLetterAlreadyIsToldAndNotCounted) {
  send(2);
  ASSERT_EQ(run({"invalid", "A-0", "--reason", "first"}).exit_code, 0);
  const json::value tried = json_of({"delete", "orders", "A-0", "--dry-run"});
  EXPECT_TRUE(tried.at("queue_type").is_null()) << "it was said to lie in the standard half";
  const Finished again = run({"invalid", "A-0", "--reason", "second"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("message A-0 lies in the dead-letter half already"));
  const json::value some = json_of({"invalid", "A-0", "A-1"});
  EXPECT_EQ(some.at("dead_lettered").as_int64(), 1);
  EXPECT_EQ(some.at("skipped").as_int64(), 1);
  EXPECT_THAT(run({"get", "A-0"}).out, HasSubstr("first"));
}

TEST_P(BulkCommands, EditSetsAndUnsets) {
  ASSERT_EQ(
      run({"send", "--id", "A-0", "--attr", "a=1", "--data", R"({"big": 9007199254740993, "list": [1, 2], "gone": 1})"})
          .exit_code,
      0);
  const Finished edited = run({"edit", "--id", "A-0", "--set", "data.net=12.50", "--set", "data.list[2]=x", "--set",
                               "attributes.b=2", "--unset", "data.gone", "--unset", "attributes.a"});
  ASSERT_EQ(edited.exit_code, 0) << edited.err;
  EXPECT_THAT(edited.out, HasSubstr("9007199254740993"));
  const json::value message = json::parse(edited.out);
  EXPECT_EQ(message.at("data").as_object().size(), 3U);
  EXPECT_EQ(message.at("data").at("list"), (json::value{1, 2, "x"}));
  EXPECT_EQ(message.at("attributes"), (json::value{{"b", "2"}}));
  EXPECT_EQ(message.at("version").as_int64(), 2);
  const Finished nowhere = run({"edit", "--id", "A-0", "--set", "data.no.way=1"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_EQ(nowhere.err_lines().size(), 1U);
  EXPECT_EQ(run({"edit", "--id", "A-0", "--set", "dta=1"}).exit_code, 64);
}

TEST_P(BulkCommands, EditManyWithAFilter) {
  send(4);
  EXPECT_EQ(run({"edit", "--where", "data.n > 1", "--yes"}).exit_code, 64) << "no editor for many";
  const json::value edited = json_of({"edit", "--where", "data.n > 1", "--set", "attributes.tenant=acme", "--yes"});
  EXPECT_THAT(texts(edited.at("successes")), ElementsAre("A-2", "A-3"));
  EXPECT_EQ(edited.at("edited").as_int64(), 2);
  EXPECT_THAT(ids({"--where", "attributes.tenant = 'acme'"}), ElementsAre("A-2", "A-3"));
  const Finished failed = run({"edit", "--all", "--set", "data.no.way=1", "--yes"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(json::parse(failed.out).at("failures").as_array().size(), 4U);
  EXPECT_EQ(json::parse(failed.out).at("failures").at(0).at("ID").as_string(), "A-0");
}

TEST_P(BulkCommands, TheEditorChangesWhatItTouches) {
  ASSERT_EQ(run({"send", "--id", "A-0", "--data", R"({"big": 9007199254740993, "net": 12.50})"}).exit_code, 0);
  const std::string replace = editor("sed -i 's/12.50*/99.90/' \"$1\"");
  const Finished edited = run({"edit", "--id", "A-0"}, {{"EDITOR", replace}});
  ASSERT_EQ(edited.exit_code, 0) << edited.err;
  EXPECT_THAT(edited.out, HasSubstr("\"big\": 9007199254740993"));
  EXPECT_EQ(json::parse(edited.out).at("data").at("net").as_double(), 99.9);
  const Finished again = run({"edit", "--id", "A-0"}, {{"EDITOR", "false"}, {"VISUAL", replace}});
  EXPECT_EQ(again.exit_code, 0) << "VISUAL comes first";
  EXPECT_THAT(again.err, HasSubstr("nothing was changed"));
  EXPECT_THAT(left_files(), IsEmpty());
}

TEST_P(BulkCommands, TheEditorsTextIsNeverLost) {
  send(1);
  const Finished none = run({"edit", "--id", "A-0"});
  EXPECT_EQ(none.exit_code, 64) << "no editor without a terminal, unless one is named";
  EXPECT_THAT(run({"edit", "--id", "A-0"}, {{"EDITOR", "false"}}).err, HasSubstr("ended with code 1"));
  EXPECT_THAT(left_files(), IsEmpty());
  const Finished broken = run({"edit", "--id", "A-0"}, {{"EDITOR", editor("echo '{' > \"$1\"")}});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.err, HasSubstr("your text is in "));
  ASSERT_EQ(left_files().size(), 1U);
  std::filesystem::remove_all(left_files().front());
  // Somebody else is faster.
  const std::string race =
      editor("sed -i 's/even/mine/' \"$1\"\n" SLUICE_BINARY " edit --id A-0 --set data.type=theirs > /dev/null");
  const Finished lost = run({"edit", "--id", "A-0"}, {{"EDITOR", race}});
  EXPECT_EQ(lost.exit_code, 1);
  EXPECT_THAT(lost.err, HasSubstr("your text is in "));
  ASSERT_EQ(left_files().size(), 1U);
  std::ifstream file(left_files().front() + "/message.json");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), HasSubstr("mine"));
  EXPECT_EQ(json_of({"get", "--id", "A-0"}).at("data").at("type").as_string(), "theirs");
}

TEST_P(BulkCommands, AnEditorThatFailsTakesNoTextWithIt) {
  send(1);
  const Finished killed =
      run({"edit", "--id", "A-0"}, {{"EDITOR", editor("sed -i 's/even/mine/' \"$1\"\nkill -KILL $$")}});
  EXPECT_EQ(killed.exit_code, 1);
  EXPECT_THAT(killed.err, AllOf(HasSubstr("nothing was changed"), HasSubstr("your text is in ")));
  ASSERT_EQ(left_files().size(), 1U);
  std::ifstream file(left_files().front() + "/message.json");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), HasSubstr("mine"));
  std::filesystem::remove_all(left_files().front());
  const Finished removed = run({"edit", "--id", "A-0"}, {{"EDITOR", "rm"}});
  EXPECT_EQ(removed.exit_code, 1);
  EXPECT_THAT(removed.err, AllOf(HasSubstr("nothing was changed"), Not(HasSubstr("your text is in "))));
  EXPECT_THAT(left_files(), IsEmpty());
}

TEST_P(BulkCommands, DelayFrontAndCancel) {
  send(3);
  const json::value delayed = json_of({"delay", "--id", "A-0", "--for", "1h"});
  EXPECT_EQ(delayed.at("state").as_string(), "delayed");
  EXPECT_THAT(ids(), ElementsAre("A-1", "A-2", "A-0"));
  EXPECT_EQ(json_of({"move-to-front", "--id", "A-2"}).at("state").as_string(), "ready");
  EXPECT_THAT(ids(), ElementsAre("A-2", "A-1", "A-0"));
  EXPECT_EQ(json_of({"move-to-front", "--id", "A-0"}).at("state").as_string(), "ready");
  EXPECT_EQ(json_of({"receive"}).at("id").as_string(), "A-0");
  const Finished cancelled = run({"cancel", "--id", "A-1"});
  EXPECT_EQ(cancelled.exit_code, 0);
  EXPECT_EQ(json::parse(cancelled.out).at("result").as_string(), "canceled");
  EXPECT_EQ(run({"cancel", "--id", "A-1"}).exit_code, 1) << "not there";
  EXPECT_THAT(ids(), ElementsAre("A-0", "A-2"));
  EXPECT_EQ(run({"delay", "--id", "A-2"}).exit_code, 64);
  EXPECT_EQ(run({"delay", "--id", "A-2", "--for", "soon"}).exit_code, 64);
}

TEST_P(BulkCommands, WhatIsInFlightIsLeftAlone) {
  send(1);
  ASSERT_EQ(json_of({"receive"}).at("id").as_string(), "A-0");
  for (const Words& words :
       {Words{"edit", "--id", "A-0", "--set", "data.n=1"}, Words{"delay", "--id", "A-0", "--for", "1s"},
        Words{"move-to-front", "--id", "A-0"}, Words{"cancel", "--id", "A-0"}}) {
    const Finished refused = run(words);
    EXPECT_EQ(refused.exit_code, 1) << words[0];
    EXPECT_THAT(refused.err, HasSubstr("is in flight until ")) << words[0];
    EXPECT_EQ(refused.err.find("--force") == std::string::npos, words[0] == "cancel") << refused.err;
  }
  EXPECT_EQ(json_of({"delete", "--all", "--yes"}).at("skipped").as_int64(), 1);
  EXPECT_EQ(run({"edit", "--id", "A-0", "--set", "data.n=1", "--force"}).exit_code, 0);
  EXPECT_EQ(json_of({"delete", "--all", "--yes", "--force"}).at("removed").as_int64(), 1);
}

TEST_P(BulkCommands, PeekShowsWhatComesNext) {
  send(3);
  ASSERT_EQ(run({"send", "--id", "late", "--delay", "1h", "--data", "1"}).exit_code, 0);
  ASSERT_EQ(run({"receive"}).exit_code, 0);
  const json::value next = json_of({"peek"});
  ASSERT_EQ(next.as_array().size(), 2U);
  EXPECT_EQ(next.at(0).at("id").as_string(), "A-1");
  EXPECT_EQ(next.at(0).at("receive_count").as_int64(), 0) << "it is not received";
  EXPECT_EQ(next.at(0).at("data").at("type").as_string(), "odd");
  EXPECT_EQ(json_of({"peek", "--limit", "1"}).as_array().size(), 1U);
  EXPECT_EQ(json_of({"peek", "--any-state"}).as_array().size(), 4U);
  EXPECT_EQ(json_of({"peek", "--where", "data.n = 2"}).at(0).at("id").as_string(), "A-2");
  EXPECT_TRUE(json_of({"peek", "--dlq"}).as_array().empty());
  EXPECT_THAT(run({"peek", "--limit", "1", "--output", "text"}).out, HasSubstr("A-1"));
}

TEST_P(BulkCommands, AFilterErrorPointsAtItsColumn) {
  const Finished finished = run({"purge", "--where", "receive_count > ", "--yes"});
  EXPECT_EQ(finished.exit_code, 64);
  EXPECT_THAT(finished.err_lines(),
              ElementsAre("sluice purge: --where, column 17: expected a value after \">\"",
                          "sluice purge:   receive_count > ", "sluice purge:                   ^"));
  for (const Words& words : {Words{"peek"}, Words{"delete"}, Words{"redrive"}, Words{"edit", "--set", "data=1"}}) {
    Words all = words;
    all.insert(all.end(), {"--where", "recieve_count > 3"});
    const Finished wrong = run(all);
    EXPECT_EQ(wrong.exit_code, 64) << words[0];
    EXPECT_THAT(wrong.err, HasSubstr("column 1: unknown field \"recieve_count\"; did you mean receive_count?"));
  }
  EXPECT_EQ(run({"purge", "--error-like", "", "--yes"}).exit_code, 64) << "it would take everything with an error";
  EXPECT_EQ(run({"purge", "--older-than", "x", "--yes"}).exit_code, 64);
  for (const char* const rate :
       {"0", "x", "1/d", "-1/s", "1e3", "1.2.3/s", "/s", "0.0000000000000000000000000000001/s", "0.9/h"}) {
    EXPECT_EQ(run({"purge", "--rate=" + std::string(rate), "--yes"}).exit_code, 64) << rate;
  }
}

TEST_P(BulkCommands, AnInterruptStopsBetweenBatchesAndTheRunGoesOn) {
  send_lines(600);
  RunningBinary first({"purge", "--where", "receive_count = 0", "--rate", "2/s", "--output", "text", "--yes"},
                      options());
  EXPECT_THAT(first.read_line(), HasSubstr("removed  "));
  first.signal(SIGINT);
  const Finished stopped = first.finish();
  EXPECT_EQ(stopped.exit_code, 130);
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("interrupted; "), HasSubstr("the same command goes on")));
  const auto left = ids().size();
  EXPECT_LT(left, 600U);
  EXPECT_GE(left, 590U);
}

/// A descriptor that is closed must not become a socket's or a file's, which would then be written to.
TEST_P(BulkCommands, AClosedOutputIsAnErrorAndNothingElse) {
  send(1);
  BinaryOptions closed = options();
  closed.no_output = true;
  for (const char* command : {"ls", "export", "stats"}) {
    const Finished finished = run_binary({command}, closed);
    EXPECT_EQ(finished.exit_code, 1) << command;
    EXPECT_THAT(finished.err, HasSubstr("cannot write to standard output")) << command;
  }
  RunningBinary tail({"tail", "--interval", "50ms"}, closed);
  // Before that the loader has its libraries there, one by one. Without an end the test's own time-out fails it.
  while (tail.open_file(STDOUT_FILENO) != "/dev/null") {
  }
  tail.signal(SIGTERM);
  tail.finish();
}

TEST_P(BulkCommands, ALimitedRunSaysWhereItGoesOn) {
  constexpr int kMessages = 600;
  send_lines(kMessages);
  const int page = GetParam() == Where::sqlite ? 500 : 250;
  const json::value first =
      json_of({"edit", "--all", "--set", "attributes.seen=1", "--yes", "--limit", std::to_string(page + 1)});
  EXPECT_EQ(first.at("edited").as_int64(), page + 1);
  const std::string cursor(first.at("resume").as_string());
  const json::value second = json_of({"edit", "--all", "--set", "attributes.seen=2", "--yes", "--resume", cursor});
  EXPECT_EQ(second.at("edited").as_int64(), kMessages - page) << "the page under way again, and the rest";
  EXPECT_FALSE(second.as_object().contains("resume"));
  EXPECT_EQ(json_of({"delete", "--where", "attributes.seen = '1'", "--dry-run"}).at("matched").as_int64(), page);
  const Finished wrong = run({"edit", "--all", "--set", "data=1", "--yes", "--resume", "no cursor"});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_EQ(wrong.out, "");
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("edit: --resume: "), HasSubstr("start"), Not(HasSubstr("go on"))));
}

}  // namespace
}  // namespace sluice::test
