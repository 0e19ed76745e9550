#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "base/descriptor.hpp"
#include "base/temporary_folder.hpp"
#include "host/cli/command.hpp"
#include "host/cli/options.hpp"

namespace sluice::cli {
namespace {

const Command& sample() {
  static const Command kCommand{
      .name = "sample",
      .flags = {{.name = "queue", .value = "QUEUE", .help = "", .required = true},
                {.name = "attr", .value = "NAME=VALUE", .help = "", .repeated = true},
                {.name = "limit", .value = "N", .help = ""},
                {.name = "yes", .value = {}, .help = ""}},
      .stdin_operand = true,
  };
  return kCommand;
}

std::string failure(const std::vector<std::string>& words) {
  const auto parsed = Arguments::parse(sample(), words);
  if (parsed.has_value()) {
    return "parsed";
  }
  EXPECT_EQ(parsed.error().code(), kExitUsage);
  EXPECT_EQ(parsed.error().lines().size(), 1U);
  return parsed.error().lines().front();
}

TEST(Arguments, TakeValuesApartAndAdjacent) {
  const auto parsed = Arguments::parse(sample(), {"--queue=a=b", "--attr", "x=1", "--yes", "--attr=y=", "-"});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->get("queue"), "a=b");
  EXPECT_EQ(parsed->all("attr"), (std::vector<std::string>{"x=1", "y="}));
  EXPECT_TRUE(parsed->has("yes"));
  EXPECT_TRUE(parsed->reads_stdin());
  EXPECT_FALSE(parsed->has("limit"));
  EXPECT_EQ(parsed->get("limit", "7"), "7");
  EXPECT_TRUE(parsed->all("limit").empty());
}

TEST(Arguments, ValuesMayLookLikeOptions) {
  const auto parsed =
      Arguments::parse(sample(), {"--queue", "-1", "--attr", "-x", "--attr", "--odd=1", "--limit=--yes"});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().lines().front();
  EXPECT_EQ(parsed->get("queue"), "-1");
  EXPECT_EQ(parsed->get("limit"), "--yes");
  EXPECT_EQ(parsed->all("attr"), (std::vector<std::string>{"-x", "--odd=1"}));
}

TEST(Arguments, WordsOfARepeatedOptionStandBeforeItsOthers) {
  const Command remove{
      .name = "delete",
      .flags = {{.name = "id", .value = "ID", .help = "", .repeated = true, .alone = true},
                {.name = "yes", .value = {}, .help = ""}},
  };
  const auto parsed = Arguments::parse(remove, {"--id", "A-3", "A-1", "--yes", "A-2"});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->all("id"), (std::vector<std::string>{"A-1", "A-2", "A-3"}));
  const auto empty = Arguments::parse(remove, {"A-1", ""});
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().lines().front(), "an empty word stands where ID should");
}

TEST(Arguments, WordsMayStandForOptionsInTheirOrder) {
  const Command scale{
      .name = "scale",
      .flags = {{.name = "job", .value = "JOB", .help = "", .required = true, .alone = true},
                {.name = "workers", .value = "N", .help = "", .required = true, .alone = true},
                {.name = "yes", .value = {}, .help = ""}},
  };
  const auto read = [&scale](const std::vector<std::string>& words) {
    const auto parsed = Arguments::parse(scale, words);
    return parsed.has_error() ? parsed.error().lines().front() : parsed->get("job") + "/" + parsed->get("workers");
  };
  EXPECT_EQ(read({"mailer", "16"}), "mailer/16");
  EXPECT_EQ(read({"mailer", "--yes", "16"}), "mailer/16");
  EXPECT_EQ(read({"--job", "mailer", "16"}), "mailer/16");
  EXPECT_EQ(read({"--workers", "16", "mailer"}), "mailer/16");
  EXPECT_EQ(read({"mailer", "16", "more"}), "unexpected word \"more\"; `sluice help scale` shows what it takes");
  EXPECT_EQ(read({"mailer", "--job", "other"}), "--job is given twice; give it once");
  EXPECT_EQ(read({"mailer"}), "--workers is missing; write `sluice scale JOB N` or --workers N");
  EXPECT_EQ(read({"", "16"}), "--job is empty; write `sluice scale JOB N` or --job JOB");
}

TEST(Arguments, AreReadOfALineThatIsHalfWritten) {
  const Command look{
      .name = "look",
      .flags = {{.name = "id", .value = "ID", .help = "", .alone = true},
                {.name = "queue", .value = "QUEUE", .help = "", .alias = "name"},
                {.name = "outbox", .value = "NAME", .help = ""},
                {.name = "yes", .value = {}, .help = ""}},
      .stdin_operand = true,
  };
  const auto read = [&look](const std::vector<std::string>& words) { return Arguments::of_line(look, words); };
  const Arguments line = read({"--nonsense", "A-1", "--name", "q", "-x", "-", "more", "--yes=1", "--queue"});
  EXPECT_EQ(line.plain(), (std::vector<std::string>{"A-1", "more"}));
  EXPECT_EQ(line.get("id"), "A-1");
  EXPECT_EQ(line.get("queue"), "q") << "the first of two, by its other name";
  EXPECT_TRUE(line.has("yes"));
  EXPECT_TRUE(line.reads_stdin());
  ASSERT_NE(line.awaited(), nullptr);
  EXPECT_EQ(line.awaited()->name, "queue");
  EXPECT_EQ(read({"--queue="}).awaited(), nullptr);
  EXPECT_TRUE(read({"--queue="}).has("queue")) << "though it is empty";
  EXPECT_EQ(read({"--queue", "q"}).awaited(), nullptr);
  EXPECT_EQ(read({"--outbox", "mail"}).get("queue"), "outbox:mail");
  EXPECT_FALSE(read({"--", "--queue"}).has("queue"));
  EXPECT_EQ(read({"--", "--queue"}).plain(), (std::vector<std::string>{"--queue"}));
}

TEST(Arguments, AreCompletedByWhatIsRemembered) {
  const Command remove{
      .name = "delete",
      .flags = {{.name = "id", .value = "ID", .help = "", .repeated = true, .alone = true},
                {.name = "all", .value = {}, .help = "", .against = "id"},
                {.name = "queue", .value = "QUEUE", .help = ""},
                {.name = "config", .value = "FILE", .help = ""},
                {.name = "table", .value = "TABLE", .help = "", .alias = "table-name"},
                {.name = "endpoint", .value = "URL", .help = ""}},
  };
  const RememberedOptions remembered{
      {"config", "h.toml"}, {"endpoint", "http://e"}, {"id", "A-9"}, {"other", "x"}, {"queue", "orders"}};
  const auto added = [&](const std::vector<std::string>& words) {
    std::string names;
    for (const auto& [name, value] : Arguments::of_line(remove, words).unsaid(remembered)) {
      names += name + " ";
    }
    return names;
  };
  EXPECT_EQ(added({}), "config endpoint id queue ");
  EXPECT_EQ(added({"A-1"}), "config endpoint queue ");
  EXPECT_EQ(added({"--", "--queue=x"}), "config endpoint queue ") << "that is an id";
  EXPECT_EQ(added({"--queue="}), "config endpoint id ") << "though it is wrong";
  EXPECT_EQ(added({"--all"}), "config endpoint queue ");
  EXPECT_EQ(added({"--config", "x"}), "id ");
  EXPECT_EQ(added({"--table-name", "t"}), "endpoint id ");
  const auto parsed = Arguments::parse(remove, {"--", "A-1"}, false, {{"config", "h.toml"}, {"queue", "orders"}});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->all("id"), (std::vector<std::string>{"A-1"}));
  EXPECT_EQ(parsed->get("config"), "h.toml");
  EXPECT_EQ(parsed->get("queue"), "orders");
  EXPECT_EQ(parsed->plain_id(), "A-1") << "no queue was typed";
}

TEST(Arguments, SayWhatIsWrongAndTheMend) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "--queue is missing; write --queue QUEUE"},
      {{"--queue", ""}, "--queue is empty; write --queue QUEUE"},
      {{"--queue"}, "--queue needs a value: --queue QUEUE"},
      {{"--queue="}, "--queue needs a value: --queue QUEUE"},
      {{"--queue", "--yes"}, "--queue needs a value: --queue QUEUE"},
      {{"--quue", "q"}, "unknown option --quue; did you mean --queue?"},
      {{"--quue=q"}, "unknown option --quue; did you mean --queue?"},
      {{"--queu", "q"}, "unknown option --queu; did you mean --queue?"},  // no guessing: a later flag could clash
      {{"--zzzzzz"}, "unknown option --zzzzzz; `sluice help sample` lists them"},
      {{"-q", "q"}, "unknown option -q; `sluice help sample` lists them"},
      {{"--queue", "q", "--queue", "r"}, "--queue is given twice; give it once"},
      {{"--queue", "q", "--yes=1"}, "--yes takes no value; write it without '='"},
      {{"--queue", "q", "word"}, "unexpected word \"word\"; `sluice help sample` shows what it takes"},
      {{"--queue", "q", "-", "-"}, "unexpected word \"-\"; `sluice help sample` shows what it takes"},
  };
  for (const auto& [words, message] : cases) {
    EXPECT_EQ(failure(words), message);
  }
}

// It named --queue, which nobody had typed.
TEST(Arguments, AnOutboxGivenTwiceIsCalledAsItWasTyped) {
  const Command look{
      .name = "look",
      .flags = {{.name = "queue", .value = "QUEUE", .help = ""}, {.name = "outbox", .value = "NAME", .help = ""}},
  };
  const auto parsed = Arguments::parse(look, {"--outbox", "a", "--outbox", "b"});
  ASSERT_TRUE(parsed.has_error());
  EXPECT_EQ(parsed.error().lines().front(), "--outbox is given twice; give it once");
  const auto both = Arguments::parse(look, {"--queue", "q", "--outbox", "b"});
  ASSERT_TRUE(both.has_error());
  EXPECT_EQ(both.error().lines().front(), "--queue is given twice; give it once");
}

TEST(Arguments, HelpWinsOverWhatIsMissing) {
  for (const char* word : {"--help", "-h"}) {
    const auto parsed = Arguments::parse(sample(), {word});
    ASSERT_TRUE(parsed.has_value());
    EXPECT_TRUE(parsed->wants_help());
  }
}

TEST(Arguments, CountsAreWholeNumbersWithinBounds) {
  const auto count = [](const std::string& text) {
    return Arguments::parse(sample(), {"--queue", "q", "--limit", text})->count("limit", 10, 100);
  };
  EXPECT_EQ(*count("1"), 1U);
  EXPECT_EQ(*count("100"), 100U);
  EXPECT_EQ(*Arguments::parse(sample(), {"--queue", "q"})->count("limit", 10, 100), 10U);
  for (const char* text : {"0", "101", "-1", "1.5", "ten", "1 ", "99999999999999999999999"}) {
    const auto wrong = count(text);
    ASSERT_TRUE(wrong.has_error()) << text;
    EXPECT_EQ(wrong.error().code(), kExitUsage);
    EXPECT_NE(wrong.error().lines().front().find("from 1 to 100"), std::string::npos);
  }
}

TEST(Commands, AreDescribedWhole) {
  for (const Command& command : commands()) {
    EXPECT_FALSE(command.name.empty());
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_FALSE(command.group.empty()) << command.name;
    EXPECT_FALSE(command.examples.empty()) << command.name;
    EXPECT_NE(command.run, nullptr) << command.name;
    EXPECT_NE(command.summary.back(), '.') << command.name;
    for (const Flag& flag : command.flags) {
      EXPECT_FALSE(flag.help.empty()) << command.name << " --" << flag.name;
    }
  }
}

/// Handles SIGUSR1, which ends the system call that it meets, for as long as the object lives.
class CallsInterrupted {
 public:
  CallsInterrupted() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++handled_; };
    ::sigaction(SIGUSR1, &action, &before_);
  }
  ~CallsInterrupted() { ::sigaction(SIGUSR1, &before_, nullptr); }
  CallsInterrupted(const CallsInterrupted&) = delete;
  CallsInterrupted& operator=(const CallsInterrupted&) = delete;

  static int handled() { return handled_; }

 private:
  static inline std::atomic<int> handled_ = 0;
  struct sigaction before_ {};
};

TEST(Arguments, ASignalDoesNotEndTheReadingOfANamedFile) {
  const auto folder = TemporaryFolder::make("sluice-arguments");
  ASSERT_TRUE(folder);
  const std::string pipe = (*folder)->path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Descriptor writer(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_CLOEXEC));
  const auto parsed = Arguments::parse(sample(), {"--queue", pipe});
  ASSERT_TRUE(parsed.has_value());
  const CallsInterrupted interrupted;
  std::atomic<bool> ended = false;
  std::string text;
  std::jthread reading([&] {
    const auto read = read_named(*parsed, "queue");
    text = read.has_error() ? read.error().lines().front() : *read;
    ended = true;
  });
  ASSERT_TRUE(write_all(writer.get(), "begun"));
  for (int left = 1; left > 0 && !ended;) {
    ASSERT_EQ(::ioctl(reader.get(), FIONREAD, &left), 0);
  }
  // It has read that, and waits for more: nearly all of these come while it does.
  for (int sent = 0; sent < 200 && !ended; ++sent) {
    const int before = CallsInterrupted::handled();
    ::pthread_kill(reading.native_handle(), SIGUSR1);
    while (CallsInterrupted::handled() == before && !ended) {
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE(write_all(writer.get(), ", and gone on"));
  writer.close();
  reading.join();
  EXPECT_EQ(text, "begun, and gone on");
}

}  // namespace
}  // namespace sluice::cli
