#include <signal.h>

#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

List lines(const std::string& script, const OptionMap& more = {}) {
  LiveHost host("exec", shell(script, more));
  host.handle({});
  return host.log();
}

TEST(ExecOutput, IsLoggedLineByLine) {
  EXPECT_EQ(lines("printf 'a\\nb\\r\\n\\n   \\nlast'"), (List{"a", "b", "last"}));
  EXPECT_EQ(lines("true"), List{});
}

TEST(ExecOutput, GoesToItsLevels) {
  const auto levels = [](const OptionMap& more) {
    HandlerTest test(handler_of("exec"), shell("echo out; exec >&-; echo err >&2", more));
    EXPECT_EQ(test.handle({}).status, SLUICE_DONE);
    std::vector<sluice_log_level> found;
    for (const auto& line : test.log()) {
      found.push_back(line.level);
    }
    return found;
  };
  EXPECT_EQ(levels({}), (std::vector<sluice_log_level>{SLUICE_LOG_INFO, SLUICE_LOG_WARN}));
  EXPECT_EQ(levels({{"stdout_level", "error"}, {"stderr_level", "trace"}}),
            (std::vector<sluice_log_level>{SLUICE_LOG_ERROR, SLUICE_LOG_TRACE}));
  EXPECT_EQ(levels({{"stdout_level", "off"}, {"stderr_level", "off"}}), std::vector<sluice_log_level>{});
}

TEST(ExecOutput, IsLimitedInTheLog) {
  const List log = lines("yes 123456789 | head -c 5000000; exit 0", {{"output_limit", 100}});
  EXPECT_EQ(log.size(), 11U);
  EXPECT_EQ(log.back(), "output beyond 100 bytes is not logged; see the option output_limit");
  EXPECT_EQ(lines("echo hello", {{"output_limit", 0}}).size(), 1U);
  EXPECT_EQ(lines("echo 123456789", {{"output_limit", 10}}), List{"123456789"});
}

TEST(ExecOutput, CutsALineWithoutEnd) {
  const List log = lines("head -c 10000 /dev/zero | tr '\\0' x");
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(log[0], std::string(4096, 'x'));
  EXPECT_EQ(log[2].size(), 10000U - 2 * 4096);
}

TEST(ExecOutput, EndsAsTheReason) {
  const auto reason = [](const std::string& script, const OptionMap& more = {}) {
    return LiveHost("exec", shell(script, more)).handle({}).reason;
  };
  EXPECT_EQ(reason("exit 3"), "exited with 3");
  EXPECT_EQ(reason("echo out; exit 3"), "exited with 3");
  EXPECT_EQ(reason("printf 'cannot open x\\n' >&2; exit 3"), "exited with 3: cannot open x");
  EXPECT_EQ(reason("seq 1 8 >&2; exit 3"), "exited with 3: 4 | 5 | 6 | 7 | 8");
  EXPECT_EQ(reason("echo quiet >&2; exit 3", {{"stderr_level", "off"}, {"output_limit", 0}}), "exited with 3: quiet");
  EXPECT_EQ(reason("echo bad data >&2; exit 65"), "exited with 65: bad data");
  EXPECT_LT(reason("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 3").size(), 1100U);
}

TEST(ExecOutput, MayEndBeforeTheCommandDoes) {
  LiveHost host("exec", shell("exec >&- 2>&-; cat >/dev/null; exit 3"));
  EXPECT_EQ(host.handle({.body = "x"}).reason, "exited with 3");
}

TEST(ExecOutput, MayBeHeldOpenByAProcessInTheBackground) {
  LiveHost host("exec", shell("sleep 300 & echo $!; exit 0"));
  EXPECT_EQ(host.handle({}).status, SLUICE_DONE);
  ASSERT_EQ(host.log().size(), 1U);
  const pid_t background = std::stoi(host.log().front());
  EXPECT_EQ(::kill(background, SIGKILL), 0) << "what a command leaves behind on purpose is left alone";
}

TEST(ExecOutput, MayGoOnForEverInTheBackground) {
  LiveHost host("exec", shell("yes & echo $! >&2; exit 0", {{"stdout_level", "off"}}));
  EXPECT_EQ(host.handle({}).status, SLUICE_DONE);
  ASSERT_EQ(host.log().size(), 1U);
  ::kill(std::stoi(host.log().front()), SIGKILL);
}

}  // namespace
}  // namespace sluice::shipped
