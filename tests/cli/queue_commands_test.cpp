#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

json::object object_of(const Finished& finished) {
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return json::parse(finished.out).as_object();
}

std::vector<std::string> keys_of(const json::object& object) {
  std::vector<std::string> keys;
  for (const auto& member : object) {
    keys.emplace_back(member.key());
  }
  return keys;
}

json::object get(const HostFolder& folder, const std::string& id) {
  return object_of(folder.run({"get", "--queue", "orders", "--id", id}));
}

TEST(Send, PrintsTheIdAndStoresTheMessage) {
  const HostFolder folder;
  const Finished sent = folder.run({"send", "--queue", "orders", "--data", "{\"n\": 9007199254740993.10}"});
  EXPECT_EQ(sent.exit_code, 0) << sent.err;
  EXPECT_EQ(sent.err, "");
  EXPECT_THAT(sent.out, MatchesRegex("[0-9a-f]+-[0-9a-f]+-7[0-9a-f]+-[0-9a-f]+-[0-9a-f]+\n"));
  const std::string id = sent.out.substr(0, sent.out.size() - 1);
  const Finished shown = folder.run({"get", "--queue", "orders", "--id", id});
  EXPECT_THAT(shown.out, HasSubstr("\"n\": 9007199254740993.10")) << "every digit stays";
}

TEST(Send, TakesEveryKindOfBody) {
  const HostFolder folder;
  folder.write("body.json", " {\"a\": 1}\n");
  folder.write("body.txt", "two\nlines\n");
  folder.write("body.bin", std::string("\xff\x00\x01", 3));
  const auto send = [&folder](std::vector<std::string> words) {
    words.insert(words.begin(), {"send", "--queue", "orders"});
    const Finished sent = folder.run(words);
    EXPECT_EQ(sent.exit_code, 0) << sent.err;
    return get(folder, sent.out.substr(0, sent.out.find('\n')));
  };
  EXPECT_EQ(send({"--data", "\"a\\u0062\""}).at("data").as_string(), "ab");
  EXPECT_EQ(send({"--data", "\"x\""}).at("content_type").as_string(), "text/plain");
  EXPECT_EQ(send({"--data", "[1]"}).at("content_type").as_string(), "application/json");
  EXPECT_EQ(send({"--data", "null"}).at("data"), json::value(nullptr));
  EXPECT_EQ(send({"--text", "{not json"}).at("data").as_string(), "{not json");
  EXPECT_EQ(send({"--text", ""}).at("data").as_string(), "");
  EXPECT_EQ(send({"--file", "body.json"}).at("data").as_object().at("a").as_int64(), 1);
  EXPECT_EQ(send({"--file", "body.txt"}).at("data").as_string(), "two\nlines\n");
  const json::object binary = send({"--file", "body.bin"});
  EXPECT_EQ(binary.at("data").as_string(), "/wAB");
  EXPECT_EQ(binary.at("data_encoding").as_string(), "base64");
  EXPECT_EQ(binary.at("content_type").as_string(), "application/octet-stream");
}

TEST(Send, KeepsIdDelayAndAttributes) {
  const HostFolder folder;
  const Finished sent = folder.run({"send", "--queue", "orders", "--id", "A-1", "--delay", "1h", "--attr",
                                    "tenant=acme", "--attr", "k=a=b", "--data", "1"});
  EXPECT_EQ(sent.out, "A-1\n") << sent.err;
  const json::object message = get(folder, "A-1");
  EXPECT_EQ(message.at("state").as_string(), "delayed");
  EXPECT_EQ(message.at("attributes"), (json::value{{"k", "a=b"}, {"tenant", "acme"}}));
}

TEST(Send, RefusesAnIdThatIsInUse) {
  const HostFolder folder;
  ASSERT_EQ(folder.run({"send", "--queue", "orders", "--id", "A-1", "--data", "1"}).exit_code, 0);
  const Finished again = folder.run({"send", "--queue", "orders", "--id", "A-1", "--data", "2"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(again.err,
            "sluice send: a message with the id A-1 is in queue orders already; choose another --id, or none\n");
  EXPECT_EQ(get(folder, "A-1").at("data").as_int64(), 1);
}

TEST(Get, ShowsDynamoMqsKeysFirst) {
  const HostFolder folder;
  folder.run({"send", "--queue", "orders", "--id", "A-1", "--data", "1"});
  const json::object message = get(folder, "A-1");
  EXPECT_THAT(keys_of(message),
              ElementsAre("id", "data", "receive_count", "queue_type", "version", "created_at", "updated_at", "sent_at",
                          "received_at", "invisible_until_at", "state", "content_type", "attributes"));
  EXPECT_EQ(message.at("queue_type").as_string(), "STANDARD");
  EXPECT_EQ(message.at("receive_count").as_int64(), 0);
  EXPECT_EQ(message.at("received_at").as_string(), "");
  EXPECT_THAT(std::string(message.at("sent_at").as_string()), MatchesRegex("20.*T.*\\..........Z"));
}

TEST(Get, SaysThatAMessageIsNotThere) {
  const HostFolder folder;
  const Finished finished = folder.run({"get", "--queue", "orders", "--id", "nobody"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.out, "");
  ASSERT_EQ(finished.err_lines().size(), 1U);
  EXPECT_THAT(finished.err, HasSubstr("nobody"));
}

/// The messages that `ls` shows, as DynamoMQ's list has them.
json::array statuses_of(const Finished& finished) {
  const json::object list = object_of(finished);
  EXPECT_EQ(keys_of(list).front(), "statuses");
  const json::value& statuses = list.at("statuses");
  return statuses.is_null() ? json::array() : statuses.as_array();
}

TEST(Ls, ShowsTheOldestFirst) {
  const HostFolder folder;
  std::string lines;
  for (int message = 0; message < 25; ++message) {
    lines += std::to_string(message) + "\n";
  }
  const Finished sent = folder.run({"send", "--queue", "orders", "-"}, lines);
  ASSERT_EQ(sent.exit_code, 0);
  const auto listed = [&folder](std::vector<std::string> words) {
    words.insert(words.begin(), {"ls", "--queue", "orders"});
    const Finished finished = folder.run(words);
    EXPECT_EQ(finished.err, "");
    std::vector<std::string> ids;
    for (const json::value& status : statuses_of(finished)) {
      ids.emplace_back(status.at("id").as_string());
    }
    return ids;
  };
  const std::vector<std::string> ids = sent.out_lines();
  EXPECT_EQ(listed({"--limit", "3"}), std::vector<std::string>(ids.begin(), ids.begin() + 3));
  EXPECT_EQ(listed({}), std::vector<std::string>(ids.begin(), ids.begin() + 10)) << "ten, as DynamoMQ's";
  EXPECT_EQ(listed({"--limit", "300"}), ids);
  EXPECT_EQ(listed({"--all"}), ids);
  EXPECT_TRUE(listed({"--dlq"}).empty());
}

TEST(Ls, PagesThroughManyMessages) {
  const HostFolder folder;
  std::string lines;
  for (int message = 0; message < 1100; ++message) {
    lines += "1\n";
  }
  ASSERT_EQ(folder.run({"send", "--queue", "orders", "-"}, lines).exit_code, 0);
  EXPECT_EQ(statuses_of(folder.run({"ls", "--queue", "orders", "--all"})).size(), 1100U);
  EXPECT_EQ(statuses_of(folder.run({"ls", "--queue", "orders", "--limit", "600"})).size(), 600U);
  const Finished text = folder.run({"ls", "--queue", "orders", "--limit", "600", "--output", "text"});
  EXPECT_EQ(text.out_lines().size(), 601U) << "one headline for all pages";
}

TEST(Ls, ShowsWhatAFilterMatches) {
  const HostFolder folder;
  std::string lines;
  for (int message = 0; message < 600; ++message) {
    lines += "{\"n\": " + std::to_string(message) + "}\n";
  }
  ASSERT_EQ(folder.run({"send", "--queue", "orders", "-"}, lines).exit_code, 0);
  const auto listed = [&folder](std::vector<std::string> words) {
    words.insert(words.begin(), {"ls", "--queue", "orders"});
    return statuses_of(folder.run(words)).size();
  };
  EXPECT_EQ(listed({"--where", "data.n >= 590", "--all"}), 10U) << "from behind the first page";
  EXPECT_EQ(listed({"--where", "data.n >= 100", "--limit", "7"}), 7U);
  EXPECT_EQ(listed({"--where", "data.n = 599", "--limit", "1"}), 1U);
  EXPECT_EQ(listed({"--where", "data.n > 1000"}), 0U);
  EXPECT_EQ(listed({"--older-than", "1h", "--all"}), 0U);
  const Finished wrong = folder.run({"ls", "--queue", "orders", "--where", "data.n >"});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.err, HasSubstr("column 9"));
  EXPECT_EQ(wrong.out, "");
}

TEST(Stats, CountsOneQueue) {
  const HostFolder folder;
  folder.run({"send", "--queue", "orders", "-"}, "1\n2\n3\n");
  folder.run({"send", "--queue", "orders", "--delay", "1h", "--data", "4"});
  const json::object stats = object_of(folder.run({"stats", "--queue", "orders"}));
  EXPECT_THAT(keys_of(stats),
              ElementsAre("first_100_IDs_in_queue", "first_100_IDs_in_queue_processing", "total_messages_in_queue",
                          "total_messages_in_queue_processing", "total_messages_in_queue_ready", "queue", "total",
                          "ready", "in_flight", "delayed", "dlq", "oldest_ready_seconds", "age_seconds", "approximate",
                          "at_least", "dlq_approximate", "dlq_errors", "retry_errors"));
  EXPECT_EQ(stats.at("total").as_int64(), 4);
  EXPECT_EQ(stats.at("ready").as_int64(), 3);
  EXPECT_EQ(stats.at("delayed").as_int64(), 1);
  EXPECT_EQ(stats.at("dlq").as_int64(), 0);
  EXPECT_GE(stats.at("oldest_ready_seconds").as_double(), 0);
  const json::object empty = object_of(folder.run({"stats", "--queue", "q"}));
  EXPECT_EQ(empty.at("total").as_int64(), 0);
  EXPECT_TRUE(empty.at("oldest_ready_seconds").is_null());
}

TEST(Stats, CountsAllQueues) {
  const HostFolder folder("[store]\npath = \"sluice.db\"\n[queues.zebra]\nvisibility_timeout = \"5s\"\n");
  folder.write("jobs.d/a.toml", "[job]\nqueue = \"orders\"\nhandler = \"h\"\n");
  folder.write("jobs.d/b.toml", "[job]\nqueue = \"orders\"\nsource = \"dlq\"\nhandler = \"h\"\n");
  folder.run({"send", "--queue", "orders", "--data", "1"});
  folder.run({"send", "--queue", "unconfigured", "--create", "--data", "1"});
  const Finished finished = folder.run({"stats"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const json::array queues = json::parse(finished.out).as_array();
  ASSERT_EQ(queues.size(), 3U);
  EXPECT_EQ(queues[0].at("queue").as_string(), "orders");
  EXPECT_EQ(queues[0].at("total").as_int64(), 1);
  EXPECT_EQ(queues[1].at("queue").as_string(), "unconfigured") << "a message has made it, and no job works on it";
  EXPECT_EQ(queues[1].at("total").as_int64(), 1);
  EXPECT_EQ(queues[2].at("queue").as_string(), "zebra");
}

TEST(Purge, RemovesEverythingOfOneHalf) {
  const HostFolder folder;
  folder.run({"send", "--queue", "orders", "-"}, "1\n2\n3\n");
  folder.run({"send", "--queue", "other", "--create", "--data", "1"});
  const json::object dlq = object_of(folder.run({"purge", "--queue", "orders", "--dlq", "--yes"}));
  EXPECT_EQ(dlq.at("removed").as_int64(), 0);
  EXPECT_EQ(dlq.at("queue_type").as_string(), "DLQ");
  EXPECT_EQ(object_of(folder.run({"stats", "--queue", "orders"})).at("total").as_int64(), 3);
  const json::object purged = object_of(folder.run({"purge", "--queue", "orders", "--yes"}));
  EXPECT_EQ(purged.at("removed").as_int64(), 3);
  EXPECT_EQ(object_of(folder.run({"stats", "--queue", "orders"})).at("total").as_int64(), 0);
  EXPECT_EQ(object_of(folder.run({"stats", "--queue", "other"})).at("total").as_int64(), 1);
}

TEST(Purge, AsksNobodyWhereNobodyIs) {
  const HostFolder folder;
  folder.run({"send", "--queue", "orders", "--data", "1"});
  EXPECT_EQ(folder.run({"purge", "--queue", "orders"}, "y\n").exit_code, 64);
  EXPECT_EQ(object_of(folder.run({"stats", "--queue", "orders"})).at("total").as_int64(), 1);
}

TEST(Output, ABrokenPipeEndsQuietly) {
  const HostFolder folder;
  std::string lines;
  for (int message = 0; message < 2000; ++message) {
    lines += "\"" + std::string(200, 'x') + "\"\n";
  }
  ASSERT_EQ(folder.run({"send", "--queue", "orders", "-"}, lines).exit_code, 0);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"ls", "--queue", "orders", "--all"},
                                             {"ls", "--queue", "orders", "--all", "--output", "text"},
                                             {"stats", "--queue", "orders"},
                                             {"help"},
                                             {"version"}}) {
    const Finished finished = run_binary(
        words, {.input = {}, .folder = folder.path(), .environment = {}, .stdout_file = {}, .closed_output = true});
    EXPECT_EQ(finished.exit_code, 141) << words[0];
    EXPECT_EQ(finished.err, "") << words[0];
  }
}

TEST(Output, AFullDiskIsAnError) {
  const Finished finished =
      run_binary({"help"}, {.input = {}, .folder = {}, .environment = {}, .stdout_file = "/dev/full"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err, "sluice: cannot write to standard output: No space left on device\n");
}

TEST(Get, SaysOfWhatNobodyEndedThatItsTimeIsOver) {
  const HostFolder folder;
  ASSERT_EQ(folder.run({"send", "--queue", "orders", "--id", "A-1", "--text", "x"}).exit_code, 0);
  const auto shown = [&folder] { return folder.run({"get", "orders", "A-1", "--output", "text"}).out; };
  EXPECT_EQ(shown().find("held by"), std::string::npos);
  ASSERT_EQ(folder.run({"receive", "orders", "--visibility-timeout", "1ms"}).exit_code, 0);
  EXPECT_THAT(shown(), HasSubstr("nobody any more: it was taken and not ended, and its time was over"));
  EXPECT_EQ(get(folder, "A-1").at("holder"), json::value(nullptr));
}

TEST(Stores, EachQueueLiesInTheStoreThatTheHostFileNames) {
  const HostFolder folder(
      "[store]\nkind = \"sqlite\"\npath = \"a.db\"\n[stores.second]\nkind = \"sqlite\"\npath = \"b.db\"\n"
      "[queues.orders]\n[queues.mails]\nstore = \"second\"\n");
  ASSERT_EQ(folder.run({"send", "--queue", "orders", "--text", "x"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/b.db")) << "a store that nobody needs is not opened";
  ASSERT_EQ(folder.run({"send", "--queue", "mails", "--text", "y"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/b.db"));
  const json::array all = json::parse(folder.run({"stats"}).out).as_array();
  ASSERT_EQ(all.size(), 2U);
  for (const json::value& queue : all) {
    EXPECT_EQ(queue.at("ready").as_int64(), 1);
  }
  EXPECT_EQ(folder.run({"ls", "--queue", "mails", "--endpoint", "http://127.0.0.1:1"}).exit_code, 64)
      << "it lies in a file";
}

}  // namespace
}  // namespace sluice::test
