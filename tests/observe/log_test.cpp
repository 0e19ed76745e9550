#include "host/observe/log.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <csignal>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

namespace sluice::observe {
namespace {

using testing::MatchesRegex;

/// What the process writes to stderr while `act` runs, by lines.
template <typename Act>
std::vector<std::string> logged(Act act) {
  testing::internal::CaptureStderr();
  act();
  std::istringstream text(testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// Points stderr at a descriptor for a scope.
class StderrAt {
 public:
  explicit StderrAt(int descriptor) : saved_(::dup(STDERR_FILENO)) {
    ::dup2(descriptor, STDERR_FILENO);
    ::close(descriptor);
  }
  ~StderrAt() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }
  StderrAt(const StderrAt&) = delete;
  StderrAt& operator=(const StderrAt&) = delete;

 private:
  int saved_;
};

TEST(Log, WritesTextLinesWithUtcTimeLevelAndFields) {
  const auto lines = logged([] {
    Log log(LogLevel::info, LogFormat::text);
    log.info("message", {{"job", "orders"}, {"id", "A-101"}});
    log.warn("plain");
  });
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], MatchesRegex(R"(20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z )"
                                     R"(info  message  job=orders id=A-101)"));
  EXPECT_THAT(lines[1], MatchesRegex(R"(.*Z warn  plain)"));
}

TEST(Log, QuotesFieldsThatAreNotOneWord) {
  const auto lines = logged([] {
    Log log(LogLevel::info, LogFormat::text);
    log.info("m", {{"a", "two words"}, {"b", ""}, {"c", "x=y"}, {"d", "say \"hi\""}, {"e", "l1\nl2"}});
  });
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], testing::EndsWith(R"(m  a="two words" b="" c="x=y" d="say \"hi\"" e="l1\nl2")"));
}

TEST(Log, NobodyCanForgeALineOrSteerTheTerminal) {
  for (const auto format : {LogFormat::text, LogFormat::json}) {
    const auto lines = logged([format] {
      Log log(LogLevel::info, format);
      log.info("evil\n2026-01-01T00:00:00.000Z error forged\x1b[2J\xff", {{"k\n", "v\r\n\x07"}});
    });
    ASSERT_EQ(lines.size(), 1U);
    for (const char byte : lines[0]) {
      EXPECT_GE(static_cast<unsigned char>(byte), 0x20);
    }
  }
}

TEST(Log, WritesOneJsonObjectALine) {
  const auto lines = logged([] {
    Log log(LogLevel::debug, LogFormat::json);
    log.debug("said \"x\" \xc3\x28", {{"job", "or\tders"}});
    log.error("broken");
  });
  ASSERT_EQ(lines.size(), 2U);
  const auto first = boost::json::parse(lines[0]).as_object();
  EXPECT_EQ(first.at("level").as_string(), "debug");
  EXPECT_EQ(first.at("message").as_string(), "said \"x\" \\xc3(");
  EXPECT_EQ(first.at("job").as_string(), "or\tders");
  EXPECT_THAT(std::string(first.at("time").as_string()), MatchesRegex(R"(20.*T.*\....Z)"));
  EXPECT_EQ(boost::json::parse(lines[1]).as_object().at("level").as_string(), "error");
}

TEST(Log, InJsonNumbersAreNumbersAndEveryLineIsJson) {
  const auto lines = logged([] {
    Log log(LogLevel::info, LogFormat::json);
    log.info("running", {{"jobs", 3}, {"left", std::int64_t{-5}}, {"clean", true}, {"name", "7"}});
    log.print("drain certificate: claimed 9\n", std::vector<LogField>{{"claimed", std::uint64_t{9}}});
    log.print("\r12 done\n");
    log.print("\n");
  });
  ASSERT_EQ(lines.size(), 3U);
  const auto first = boost::json::parse(lines[0]).as_object();
  EXPECT_EQ(first.at("jobs").as_int64(), 3);
  EXPECT_EQ(first.at("left").as_int64(), -5);
  EXPECT_TRUE(first.at("clean").as_bool());
  EXPECT_EQ(first.at("name").as_string(), "7");
  const auto second = boost::json::parse(lines[1]).as_object();
  EXPECT_EQ(second.at("message").as_string(), "drain certificate: claimed 9");
  EXPECT_EQ(second.at("claimed").as_int64(), 9);
  EXPECT_EQ(boost::json::parse(lines[2]).as_object().at("message").as_string(), "12 done");
}

TEST(Log, ShowsNumbersInTextAndPrintsTextAsItIs) {
  const auto lines = logged([] {
    Log log(LogLevel::info, LogFormat::text);
    log.info("running", {{"jobs", 3}});
    log.print("drain certificate: claimed 9\n", std::vector<LogField>{{"claimed", 9}});
  });
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[0].find("running  jobs=3"), std::string::npos);
  EXPECT_EQ(lines[1], "drain certificate: claimed 9");
}

TEST(Log, DropsWhatIsBelowItsLevelAndFollowsSet) {
  const auto lines = logged([] {
    Log log(LogLevel::warn, LogFormat::text);
    EXPECT_FALSE(log.enabled(LogLevel::info));
    log.info("hidden");
    log.set(LogLevel::trace, LogFormat::json);
    EXPECT_TRUE(log.enabled(LogLevel::trace));
    log.write(LogLevel::trace, "shown");
    log.set(LogLevel::off, LogFormat::json);
    EXPECT_FALSE(log.enabled(LogLevel::error));
    log.error("hidden");
    log.write(LogLevel::off, "hidden");
  });
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(R"("message":"shown")"), std::string::npos);
}

TEST(Log, CountsRepeatedWarningsAndSumsThemUp) {
  const auto lines = logged([] {
    Log log(LogLevel::info, LogFormat::text);
    for (int round = 0; round < 5; ++round) {
      log.warn("store is down", {{"queue", "orders"}});
    }
    log.info("same");
    log.info("same");  // only warnings and errors are counted
    log.error("other");
    log.error("other");
  });
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_THAT(lines[0], testing::EndsWith("store is down  queue=orders"));
  EXPECT_THAT(lines[1], testing::EndsWith("same"));
  EXPECT_THAT(lines[2], testing::EndsWith("same"));
  EXPECT_THAT(lines[3], testing::EndsWith("warn  repeated 4 times: store is down"));
  EXPECT_THAT(lines[4], testing::EndsWith("error other"));
  EXPECT_THAT(lines[5], testing::EndsWith("error repeated 1 times: other"));
}

TEST(Log, WarningsThatDifferInAFieldAreNotRepeats) {
  const auto lines = logged([] {
    Log log(LogLevel::info, LogFormat::text);
    log.warn("lost receipt", {{"id", "1"}});
    log.warn("lost receipt", {{"id", "2"}});
  });
  EXPECT_EQ(lines.size(), 2U);
}

TEST(Log, OutlivesAClosedPipe) {
  // As main does: a broken pipe is an error of write(2), not a signal.
  const auto previous = std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  {
    const StderrAt broken(ends[1]);
    Log log(LogLevel::info, LogFormat::text);
    for (int round = 0; round < 100; ++round) {
      log.info("into the void");
    }
  }
  std::signal(SIGPIPE, previous);
}

TEST(Log, OutlivesAFullDisk) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const StderrAt broken(full);
  Log log(LogLevel::info, LogFormat::json);
  for (int round = 0; round < 100; ++round) {
    log.error("no room", {{"round", std::to_string(round)}});
  }
}

/// A pipe that nobody reads yet, as stderr for a scope.
class UnreadStderr {
 public:
  UnreadStderr() {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    redirected_.emplace(ends_[1]);
  }
  ~UnreadStderr() { ::close(ends_[0]); }

  /// What was written, up to the end of the redirection.
  std::string read_all() {
    redirected_.reset();
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::read(ends_[0], buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  int reader() const { return ends_[0]; }

 private:
  std::array<int, 2> ends_{};
  std::optional<StderrAt> redirected_;
};

TEST(Log, AReaderThatStallsHoldsUpNobodyAndIsToldWhatItMissed) {
  UnreadStderr unread;
  std::string text;
  const std::string filling(1000, 'x');
  {
    Log log(LogLevel::info, LogFormat::text);
    for (int round = 0; round < 3000; ++round) {  // three times the room there is
      log.info(filling);
    }
    EXPECT_FALSE(log.flush(Duration::zero()));
    std::jthread reader([&] {
      std::array<char, 65536> buffer{};
      while (text.find("read at last") == std::string::npos) {
        const ssize_t got = ::read(unread.reader(), buffer.data(), buffer.size());
        text.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      }
    });
    EXPECT_TRUE(log.flush(std::chrono::minutes(1)));
    log.info("read at last");
  }
  // It is told as soon as there is room: once, or twice where the writer came late to what it could take.
  const std::string telling = " log lines were dropped, because whoever reads standard error does not keep up";
  long dropped = 0;
  long tellings = 0;
  for (std::size_t told = text.find(telling); told != std::string::npos; told = text.find(telling, told + 1)) {
    dropped += std::stol(text.substr(text.rfind(' ', told - 1) + 1));
    ++tellings;
  }
  ASSERT_GT(tellings, 0);
  EXPECT_EQ(dropped + std::count(text.begin(), text.end(), '\n') - tellings, 3001) << "and the line that ends it";
}

TEST(Log, ItsEndDoesNotWaitForAReaderThatStalls) {
  UnreadStderr unread;
  {
    Log log(LogLevel::info, LogFormat::text);
    for (int round = 0; round < 200; ++round) {
      log.info(std::string(1000, 'x'));
    }
  }
  EXPECT_GT(unread.read_all().size(), 4096U) << "as much as it could take was written";
}

TEST(Log, PrintsTextAsItIsBetweenTheLines) {
  const auto lines = logged([] {
    Log log(LogLevel::error, LogFormat::text);
    log.print("a certificate: 1 = 1\n");
    EXPECT_TRUE(log.flush(std::chrono::minutes(1)));
  });
  EXPECT_EQ(lines, std::vector<std::string>{"a certificate: 1 = 1"});
}

TEST(Log, LinesOfManyThreadsStayWhole) {
  constexpr int kThreads = 4;
  constexpr int kLines = 250;
  const auto lines = logged([] {
    Log log(LogLevel::info, LogFormat::json);
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&log, thread] {
        for (int line = 0; line < kLines; ++line) {
          log.warn("line " + std::to_string(line), {{"thread", std::to_string(thread)}});
          if (line % 50 == 0) {
            log.set(LogLevel::info, LogFormat::json);
          }
        }
      });
    }
  });
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(kThreads * kLines));
  for (const auto& line : lines) {
    boost::system::error_code failed;
    EXPECT_TRUE(boost::json::parse(line, failed).is_object()) << line;
  }
}

}  // namespace
}  // namespace sluice::observe
