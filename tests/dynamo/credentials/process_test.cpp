#include "base/timestamp.hpp"
#include "dynamo/credentials/sources.hpp"
#include "tests/dynamo/credentials/aws_fixture.hpp"

namespace sluice::dynamo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(SplitCommand, UnderstandsQuotes) {
  EXPECT_THAT(*split_command("  a  b\tc "), ElementsAre("a", "b", "c"));
  EXPECT_THAT(*split_command(R"("/opt/my tool" --name 'x "y"' z"w")"),
              ElementsAre("/opt/my tool", "--name", "x \"y\"", "zw"));
  EXPECT_THAT(*split_command(R"(a\ b "c\"d\\e\f" 'g\h' "" '')"), ElementsAre("a b", R"(c"d\e\f)", R"(g\h)", "", ""));
  EXPECT_THAT(*split_command("a $HOME *"), ElementsAre("a", "$HOME", "*"));  // nothing is expanded
  EXPECT_TRUE(split_command("")->empty());
  EXPECT_FALSE(split_command("a 'b"));
  EXPECT_FALSE(split_command("a \"b\\\""));
}

class RunProgram : public testing::Test {
 protected:
  Result<std::string> shell(const std::string& script, Duration allowed = std::chrono::seconds(20)) const {
    return run_program({"/bin/sh", "-c", script}, 1000, clock, Deadline::after(clock, allowed));
  }
  SystemClock clock;
};

TEST_F(RunProgram, GivesItsOutput) {
  EXPECT_EQ(*shell("echo one; echo two >&2 2>/dev/null; echo two"), "one\ntwo\n");
  EXPECT_EQ(*shell("cat"), "");  // no input, rather than ours
}

TEST_F(RunProgram, SaysHowItFailed) {
  EXPECT_THAT(shell("echo secret; exit 3").error().message, AllOf(HasSubstr("exit code 3"), Not(HasSubstr("secret"))));
  EXPECT_THAT(shell("kill -9 $$").error().message, HasSubstr("ended by signal 9"));
  EXPECT_THAT(run_program({"/no/such/program"}, 10, clock, Deadline::never()).error().message,
              HasSubstr("cannot be started"));
  EXPECT_FALSE(run_program({}, 10, clock, Deadline::never()));
}

TEST_F(RunProgram, LimitsOutputAndTime) {
  EXPECT_THAT(shell("yes").error().message, HasSubstr("more than 1000 bytes"));
  EXPECT_THAT(shell("sleep 600", std::chrono::milliseconds(50)).error().message, HasSubstr("takes too long"));
  // Also when it closes its output, or leaves a child with it.
  EXPECT_THAT(shell("exec >&-; sleep 600", std::chrono::milliseconds(50)).error().message, HasSubstr("takes too long"));
  EXPECT_THAT(shell("sleep 600 & exit 0", std::chrono::milliseconds(50)).error().message, HasSubstr("takes too long"));
}

class ProcessTest : public AwsFixture {
 protected:
  void prints(const std::string& text) {
    write("output", text);
    config("[default]\ncredential_process = /bin/cat \"" + (home / "output").string() + "\"\n");
  }
};

TEST_F(ProcessTest, ReadsVersionOne) {
  prints(
      R"({"Version":1,"AccessKeyId":"P","SecretAccessKey":"s","SessionToken":"t","Expiration":"2026-01-02T09:00:00+00:00","AccountId":"123456789012"})");
  const auto found = look_up();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->access_key_id, "P");
  EXPECT_EQ(found->session_token, "t");
  EXPECT_EQ(found->account_id, "123456789012");
  EXPECT_TRUE(found->expires_at.has_value());
  prints(R"({"Version":1,"AccessKeyId":"P","SecretAccessKey":"s"})");
  EXPECT_FALSE(look_up()->expires_at.has_value());
}

TEST_F(ProcessTest, AnExpirationBeyondAllTimesIsOne) {
  for (const char* end : {"\"9999-12-31T23:59:59Z\"", "\"2262-01-01T00:00:00Z\"", "253402300799000"}) {
    prints(std::string(R"({"Version":1,"AccessKeyId":"P","SecretAccessKey":"s","Expiration":)") + end + "}");
    EXPECT_EQ(look_up()->expires_at, kEndOfTime) << end;
  }
}

TEST_F(ProcessTest, RefusesOtherOutput) {
  for (const char* text :
       {"", "{}", R"({"Version":2,"AccessKeyId":"P","SecretAccessKey":"s"})", "AccessKeyId=P", "[1]"}) {
    prints(text);
    EXPECT_THAT(failure(), HasSubstr("not JSON with \"Version\": 1")) << text;
  }
  prints(R"({"Version":1,"AccessKeyId":"P"})");
  EXPECT_THAT(failure(), HasSubstr("no access key"));
  prints(R"({"Version":1,"AccessKeyId":"P","SecretAccessKey":"s","Expiration":"2026-01-02T03:00:00Z"})");
  EXPECT_THAT(failure(), HasSubstr("expired already"));
  prints(R"({"Version":1,"AccessKeyId":"P","SecretAccessKey":"s","Expiration":"soon"})");
  EXPECT_THAT(failure(), HasSubstr("not a time"));
  config("[default]\ncredential_process = /bin/cat 'x\n");
  EXPECT_THAT(failure(), HasSubstr("a quote that does not end"));
}

}  // namespace
}  // namespace sluice::dynamo
