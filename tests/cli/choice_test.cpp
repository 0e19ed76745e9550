// Which messages a command means, and what it says became of each: by the real binary.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/timestamp.hpp"
#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

namespace json = boost::json;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

/// A queue with, ...
class Choice : public testing::Test {
 protected:
  Finished run(Words words, bool text = false) const {
    words.insert(words.begin() + 1, {"--queue", "orders"});
    if (text) {
      words.insert(words.end(), {"--output", "text"});
    }
    return folder_.run(words);
  }
  json::value json_of(const Words& words) const {
    const Finished finished = run(words);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.exit_code == 0 ? json::parse(finished.out) : json::value();
  }
  void send(int count) const {
    for (int number = 0; number < count; ++number) {
      ASSERT_EQ(run({"send", "--id", "A-" + std::to_string(number), "--data", std::to_string(number)}).exit_code, 0);
    }
  }
  void dead_letter(const std::string& id, const std::string& reason) const {
    const Finished done = run({"invalid", id, "--reason", reason});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  std::uint64_t dead() const { return json_of({"stats"}).at("dlq").to_number<std::uint64_t>(); }

  HostFolder folder_;
};

TEST_F(Choice, TakesIdsAsPlainWordsAndSaysWhatBecameOfEach) {
  send(4);
  const Finished some = run({"delete", "A-0", "nobody", "--id", "A-2", "A-0"}, true);
  EXPECT_EQ(some.exit_code, 1);
  EXPECT_THAT(some.out_lines(), UnorderedElementsAre("removed  A-0", HasSubstr("failed  nobody  no message \"nobody\""),
                                                     "removed  A-2", "2 removed, 0 skipped, 1 failed"));
  EXPECT_EQ(run({"delete", "A-1"}, true).out, "removed  A-1\n");
  EXPECT_EQ(json_of({"delete", "A-3"}), (json::value{{"id", "A-3"}, {"result", "removed"}}));
}

TEST_F(Choice, AQueueIsAPlainWordEverywhere) {
  send(5);
  EXPECT_EQ(json::parse(folder_.run({"stats", "orders"}).out).at("total").to_number<int>(), 5);
  EXPECT_EQ(folder_.run({"dlq", "orders"}).exit_code, 0);
  EXPECT_EQ(json::parse(folder_.run({"get", "orders", "A-1"}).out).at("id").as_string(), "A-1");
  EXPECT_EQ(json::parse(folder_.run({"get", "--", "orders", "A-1"}).out).at("id").as_string(), "A-1");
  EXPECT_EQ(folder_.run({"shell", "orders", "--output", "text"}, "get -- A-2\n").exit_code, 0)
      << "what the shell adds is no id";
  EXPECT_THAT(folder_.run({"shell", "orders"}, "get q --queue=orders\n").err,
              HasSubstr("no message \"q\" in queue \"orders\""))
      << "with --queue every word is an id";
  EXPECT_EQ(folder_.run({"delete", "--yes", "orders", "A-1", "--output", "text"}).out, "removed  A-1\n");
  EXPECT_EQ(folder_.run({"send", "orders", "-"}, "7\n").out_lines().size(), 1U);
  EXPECT_EQ(
      json::parse(folder_.run({"delete", "orders", "--where", "data = 7", "--yes"}).out).at("removed").to_number<int>(),
      1);
  EXPECT_EQ(run({"send", "--id", "orders", "--data", "1"}).exit_code, 0);
  EXPECT_EQ(run({"delete", "orders"}, true).out, "removed  orders\n") << "with --queue every word is an id";
  EXPECT_EQ(json::parse(folder_.run({"purge", "orders", "--yes"}).out).at("removed").to_number<int>(), 4);
  EXPECT_THAT(folder_.run({"shell", "orders"}, "ls\nstats q\nget A-9\nget q A-9\n").err,
              testing::AllOf(testing::StartsWith("sluice get: no message \"A-9\" in queue \"orders\", and no job"),
                             testing::EndsWith("\nsluice get: no message \"A-9\" in queue \"q\"\n")))
      << "and so it is in the shell";
}

TEST_F(Choice, TriesAndAgreesForMessagesThatAreNamed) {
  send(2);
  const Finished tried = run({"delete", "A-0", "--dry-run"}, true);
  EXPECT_THAT(tried.out, HasSubstr("would remove  A-0"));
  EXPECT_EQ(run({"delete", "--id", "A-0", "--yes"}).exit_code, 0) << "there is nothing to ask, and nothing to refuse";
  EXPECT_EQ(run({"delete", "A-1", "--all"}).exit_code, 64);
  const Finished unlike = run({"delete", "A-1", "--where", "data = 7"});
  EXPECT_EQ(unlike.exit_code, 1);
  EXPECT_THAT(unlike.err, HasSubstr("message A-1 does not match"));
  EXPECT_EQ(run({"delete", "A-1", "--where", "data = 1"}).exit_code, 0);
}

TEST_F(Choice, EveryCommandThatChangesMessagesTakesAFilter) {
  send(6);
  const auto changed = [this](Words words, const std::string& done) {
    words.insert(words.end(), {"--where", "id in (\"A-0\", \"A-1\", \"A-2\")", "--limit", "2", "--yes"});
    const json::value report = json_of(words);
    return report.at(done).to_number<int>();
  };
  EXPECT_EQ(changed({"delay", "--for", "1h"}, "delayed"), 2);
  EXPECT_EQ(changed({"fail"}, "given_back"), 2);
  EXPECT_EQ(changed({"move-to-front"}, "moved_to_the_front"), 2);
  EXPECT_EQ(changed({"edit", "--set", "data=9"}, "edited"), 2);
  EXPECT_EQ(changed({"reset"}, "reset"), 2);
  EXPECT_EQ(changed({"invalid"}, "dead_lettered"), 2);
  EXPECT_EQ(changed({"redrive"}, "redriven"), 2);
  EXPECT_EQ(changed({"cancel"}, "canceled"), 2);
  EXPECT_EQ(changed({"delete"}, "removed"), 1);
}

TEST_F(Choice, ACauseIsOneRowAndBringsBackWhatFailedForIt) {
  send(25);
  for (int number = 0; number < 22; ++number) {
    dead_letter("A-" + std::to_string(number), "timed out after " + std::to_string(1000 + number) + " ms");
  }
  dead_letter("A-22", "no such customer 17");
  const json::value report = json_of({"dlq"});
  const json::array& causes = report.at("dlq_errors").as_array();
  ASSERT_EQ(causes.size(), 2U) << "what differs in numbers alone is one cause";
  EXPECT_EQ(causes[0].at("count").to_number<int>(), 22);
  EXPECT_EQ(causes[0].at("pattern").as_string(), "timed out after # ms");
  EXPECT_EQ(causes[0].at("per_hour").as_array()[0].to_number<int>(), 22);
  const std::string cause(causes[0].at("fingerprint").as_string());
  EXPECT_THAT(run({"dlq"}, true).out, HasSubstr(cause));
  EXPECT_EQ(json_of({"ls", "--dlq", "--error", "timed out after 5 ms", "--all"}).at("statuses").as_array().size(), 22U)
      << "an error's text does as well";
  EXPECT_EQ(json_of({"redrive", "--error", cause, "--limit", "20", "--yes"}).at("redriven").to_number<int>(), 20);
  EXPECT_EQ(json_of({"redrive", "--error", cause, "--yes"}).at("redriven").to_number<int>(), 2);
  EXPECT_EQ(dead(), 1U);
  EXPECT_EQ(run({"redrive", "--error", ""}).exit_code, 64);
}

TEST_F(Choice, SaysWhatItDoesNotList) {
  std::string lines;
  for (char first = 'a'; first <= 'y'; ++first) {
    lines += "\"" + std::string(1, first) + "\"\n";
  }
  ASSERT_EQ(folder_.run({"send", "--queue", "orders", "-"}, lines).exit_code, 0);
  for (char first = 'a'; first <= 'y'; ++first) {
    const std::string word(1, first);
    ASSERT_EQ(
        run({"invalid", "--where", "data = \"" + word + "\"", "--reason", word + word + " broke", "--yes"}).exit_code,
        0);
  }
  EXPECT_EQ(json_of({"dlq"}).at("dlq_errors_unlisted").to_number<int>(), 5);
  EXPECT_THAT(run({"dlq"}, true).out, HasSubstr("and 5 for other causes\n"));
}

TEST_F(Choice, WarnsOfAMessageThatSomebodyWorksOn) {
  send(2);
  ASSERT_EQ(run({"receive"}).exit_code, 0);
  const Finished spared = run({"cancel", "A-0"});
  EXPECT_EQ(spared.exit_code, 1);
  EXPECT_THAT(spared.err, HasSubstr("message A-0 is in flight until "));
  const Finished removed = run({"delete", "A-0"});
  EXPECT_EQ(removed.exit_code, 0);
  EXPECT_THAT(removed.err, HasSubstr("warning: message A-0 was in flight"));
  EXPECT_EQ(run({"delete", "A-1"}).err, "");
}

TEST_F(Choice, ReceivesNoMoreThanMayBeInFlight) {
  folder_.write("host.toml", "[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues.orders]\nmax_in_flight = 1\n");
  send(2);
  ASSERT_EQ(run({"receive"}).exit_code, 0);
  const Finished refused = run({"receive", "--wait", "20s"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("queue orders has 1 messages in flight, as many as its max_in_flight allows"));
  ASSERT_EQ(run({"delete", "A-0"}).exit_code, 0);
  EXPECT_EQ(json_of({"receive"}).at("id").as_string(), "A-1");
}

TEST_F(Choice, ReceivesForAsLongAsItsQueueSaysAndNoLongerThanItsLongestLease) {
  folder_.write("host.toml",
                "[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues.orders]\nvisibility_timeout = \"2h\"\n");
  send(1);
  const auto received = json_of({"receive"});
  const auto time_of = [&received](const char* name) {
    return *parse_timestamp(std::string(received.at(name).as_string()));
  };
  EXPECT_EQ(time_of("invisible_until_at") - time_of("received_at"), std::chrono::hours(2));
  const Finished refused = run({"receive", "--visibility-timeout", "13h"});
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_THAT(refused.err, HasSubstr("--visibility-timeout is more than queue orders's max_lease of 12h; take less"));
}

TEST_F(Choice, LsGoesOnWhereItEndedInEitherOrderAndInBothHalves) {
  send(12);
  dead_letter("A-10", "no");
  dead_letter("A-11", "no");
  const auto listed = [this](Words words, std::string* next = nullptr) {
    words.insert(words.begin(), "ls");
    const json::value list = json_of(words);
    std::string ids;
    if (list.at("statuses").is_array()) {
      for (const auto& status : list.at("statuses").as_array()) {
        ids += std::string(status.at("id").as_string()).substr(2) + " ";
        EXPECT_FALSE(status.as_object().contains("status")) << "state and status are one word";
      }
    }
    if (next != nullptr) {
      *next = list.as_object().contains("next") ? std::string(list.at("next").as_string()) : "";
    }
    return ids;
  };
  std::string next;
  EXPECT_EQ(listed({"--limit", "4"}, &next), "0 1 2 3 ");
  EXPECT_EQ(listed({"--limit", "4", "--cursor", next}, &next), "4 5 6 7 ");
  EXPECT_EQ(listed({"--limit", "4", "--cursor", next}, &next), "8 9 ");
  EXPECT_EQ(next, "");
  EXPECT_EQ(listed({"--newest", "--limit", "3"}, &next), "9 8 7 ");
  EXPECT_EQ(listed({"--newest", "--limit", "3", "--cursor", next}), "6 5 4 ");
  EXPECT_EQ(listed({"--both", "--limit", "11"}, &next), "0 1 2 3 4 5 6 7 8 9 10 ");
  EXPECT_EQ(listed({"--both", "--limit", "11", "--cursor", next}, &next), "11 ");
  EXPECT_EQ(listed({"--both", "--limit", "10"}, &next), "0 1 2 3 4 5 6 7 8 9 ");
  EXPECT_EQ(listed({"--both", "--cursor", next}), "10 11 ");
  EXPECT_EQ(listed({"--where", "data >= 5", "--limit", "2"}, &next), "5 6 ");
  EXPECT_EQ(listed({"--where", "data >= 5", "--limit", "9", "--cursor", next}), "7 8 9 ");
  EXPECT_EQ(json_of({"ls", "--limit", "3"}).at("total").to_number<int>(), 10);
  EXPECT_EQ(json_of({"ls", "--both", "--limit", "3"}).at("total").to_number<int>(), 12);
  EXPECT_EQ(run({"ls", "--cursor", "nonsense"}).exit_code, 64);
  EXPECT_EQ(run({"ls", "--cursor", ""}).exit_code, 64) << "a variable that is not set is not the beginning";
}

TEST_F(Choice, APipeGetsALongIdWhole) {
  const std::string longest(300, 'x');
  ASSERT_EQ(run({"send", "--id", longest, "--data", "1"}).exit_code, 0);
  EXPECT_THAT(run({"ls"}, true).out, HasSubstr(longest));
}

TEST_F(Choice, StateAndStatusAreOneWord) {
  send(1);
  EXPECT_EQ(json_of({"ls", "--where", "status = \"ready\""}).at("statuses").as_array().size(), 1U);
}

TEST(QueuesCommand, ListsWhatJobsFilesAndMessagesKnowInEveryStore) {
  const HostFolder folder(
      "[store]\nkind = \"sqlite\"\npath = \"a.db\"\n[stores.second]\nkind = \"sqlite\"\npath = \"b.db\"\n"
      "[queues.mail]\nstore = \"second\"\n");
  folder.write("jobs.d/bills.toml", "[job]\nqueue = \"orders\"\nhandler = \"x\"\n");
  ASSERT_EQ(folder.run({"send", "--queue", "extra", "--create", "--data", "1"}).exit_code, 0);
  const Finished listed = folder.run({"queues"});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  std::vector<std::string> lines;
  const json::value queues = json::parse(listed.out);
  for (const json::value& queue : queues.as_array()) {
    lines.push_back(std::string(queue.at("queue").as_string()) + " " + std::string(queue.at("store").as_string()) +
                    " " + json::serialize(queue.at("jobs")) + " " + json::serialize(queue.at("made_by_messages")));
  }
  EXPECT_THAT(lines, ElementsAre("extra  [] true", "mail second [] false", "orders  [\"bills\"] false"));
  EXPECT_THAT(folder.run({"queues", "--output", "text"}).out, HasSubstr("bills"));
}

TEST(SendCommand, RefusesAQueueThatNobodyKnows) {
  const HostFolder folder;
  folder.write("jobs.d/bills.toml", "[job]\nqueue = \"bills\"\nhandler = \"x\"\n");
  const Finished refused = folder.run({"send", "--queue", "ordres", "--data", "1"});
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_THAT(refused.err, HasSubstr("knows a queue \"ordres\"; did you mean \"orders\"?"));
  EXPECT_EQ(folder.run({"send", "--queue", "ordres", "-"}, "1\n").exit_code, 64);
  EXPECT_EQ(folder.run({"send", "--queue", "bills", "--data", "1"}).exit_code, 0) << "a job knows it";
  EXPECT_EQ(folder.run({"send", "--queue", "ordres", "--create", "--data", "1"}).exit_code, 0);
  EXPECT_EQ(folder.run({"send", "--queue", "ordres", "--data", "1"}).exit_code, 0) << "a message knows it now";
}

TEST(SendCommand, KeepsTheGroup) {
  const HostFolder folder;
  ASSERT_EQ(folder.run({"send", "--queue", "q", "--id", "A", "--group", "acme", "--data", "1"}).exit_code, 0);
  EXPECT_EQ(json::parse(folder.run({"get", "--queue", "q", "A"}).out).at("group").as_string(), "acme");
}

TEST(CheckCommand, IsJsonForWhoAsks) {
  const HostFolder folder;
  const Finished empty = folder.run({"check", "--json"});
  ASSERT_EQ(empty.exit_code, 0) << empty.err;
  const json::value good = json::parse(empty.out);
  EXPECT_TRUE(good.at("good").as_bool());
  EXPECT_THAT(std::string(good.at("warnings").as_array().back().as_string()), HasSubstr("there is no job"));
  folder.write("jobs.d/bad.toml", "[job]\nqueue = orders\nhandler = \"x\"\n");
  const Finished wrong = folder.run({"check", "--json"});
  EXPECT_EQ(wrong.exit_code, 78);
  const json::value bad = json::parse(wrong.out);
  EXPECT_FALSE(bad.at("good").as_bool());
  const json::value& error = bad.at("errors").as_array().at(0);
  EXPECT_EQ(error.at("line").to_number<int>(), 2);
  EXPECT_EQ(error.at("column").to_number<int>(), 9);
  EXPECT_EQ(error.at("message").as_string(), "a text stands in quotes: queue = \"orders\"");
  EXPECT_THAT(wrong.out, Not(HasSubstr("there is no job"))) << "beside an error that is not what is wrong";
  folder.write("host.toml", "[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues.orders]\n");
  EXPECT_THAT(folder.run({"check"}).err, Not(AnyOf(HasSubstr("there is no job"), HasSubstr("no job works on queue"))))
      << "the file that cannot be read may have it";
}

TEST(HelpCommand, ExplainsFilters) {
  const HostFolder folder;
  const Finished help = folder.run({"help", "filters"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("exists(data.items[0].sku)"));
  EXPECT_THAT(help.out, HasSubstr("--error CAUSE"));
}

}  // namespace
}  // namespace sluice::test
