// The catalogue of faulty plugins: each gives exactly its finding, and those in order give none.
#include <algorithm>

#include "tests/validate/validated.hpp"

namespace sluice::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// One finding, and that no host can do anything with the file.
struct Refused {
  const char* fixture;
  const char* finding;
};

class RefusedFile : public testing::TestWithParam<Refused> {};

INSTANTIATE_TEST_SUITE_P(
    Catalogue, RefusedFile,
    testing::Values(Refused{"bad_magic", "table: error: it has a symbol sluice_plugin_v1 that does not begin"},
                    Refused{"crashes_at_load", "load: error: loading it ended the process by signal 6"},
                    Refused{"duplicate_name", "table: error: it has two handlers named \"duplicate_name\""},
                    Refused{"exits_at_load", "load: error: loading it ended the process with exit code 1, and said"},
                    Refused{"major_too_new", "table: error: it is built for plugin ABI 2.0"},
                    Refused{"minor_too_new", "table: error: it is built for plugin ABI 1.1"},
                    Refused{"missing_dependency", "load: error: it needs the symbol \"nobody_defines_this\""},
                    Refused{"no_entry", "table: error: it has no symbol sluice_plugin_v1"},
                    Refused{"null_handle", "table: error: it has a handler \"null_handle\" that has no function"},
                    Refused{"struct_too_small", "table: error: it has a sluice_plugin of 24 bytes"},
                    Refused{"zero_handlers", "table: error: it has no handlers"}),
    [](const auto& parameter) { return std::string(parameter.param.fixture); });

TEST_P(RefusedFile, GivesOneFinding) {
  const Validated validated(fixture(GetParam().fixture));
  EXPECT_EQ(validated.exit_code, 1);
  EXPECT_THAT(validated.findings(), ElementsAre(StartsWith(GetParam().finding)));
  EXPECT_EQ(validated.verdict("create"), "") << "nothing of it is run";
}

TEST(Catalogue, ALoadThatNeverEndsIsEnded) {
  EXPECT_THAT(Validated(fixture("stops_at_load"), {}, "500ms").findings(),
              ElementsAre("load: error: loading it did not return within 500ms ()"));
}

TEST(Catalogue, AHandlerThatIgnoresItsStop) {
  const Validated validated(fixture("ignores_stop"), {}, "1s");
  EXPECT_EQ(validated.exit_code, 1);
  EXPECT_THAT(validated.findings(),
              ElementsAre(StartsWith("stop: error: it did not return within 1s, though it was asked to stop")));
  EXPECT_EQ(validated.verdict("bodies"), "skip") << "each would take as long";
}

struct Flawed {
  const char* fixture;
  const char* finding;
};

class FlawedHandler : public testing::TestWithParam<Flawed> {};

INSTANTIATE_TEST_SUITE_P(
    Catalogue, FlawedHandler,
    testing::Values(
        Flawed{"create_fails_without_message", "create: error: the handler "},
        Flawed{"leaks_descriptor", "leaks: error: each call of `handle` leaves 1.0 file descriptors behind ("},
        Flawed{"leaks_thread", "leaks: error: each call of `handle` leaves 1.0 threads behind, until destroy"},
        Flawed{"not_reentrant", "concurrency: error: it ended the process by signal 6"},
        Flawed{"old_size_outcome", "outcomes: error: `handle` reports an outcome that is none"},
        Flawed{"unknown_status", "outcomes: error: `handle` reports an outcome that is none"},
        Flawed{"bad_default", "options: error: the default of the option \"port\" is \"eighty\""}),
    [](const auto& parameter) { return std::string(parameter.param.fixture); });

TEST_P(FlawedHandler, GivesOneError) {
  const Validated validated(fixture(GetParam().fixture));
  EXPECT_EQ(validated.exit_code, 1);
  auto findings = validated.findings();
  std::erase_if(findings, [](const std::string& line) { return line.find(": warning: ") != std::string::npos; });
  EXPECT_THAT(findings, ElementsAre(StartsWith(GetParam().finding)));
}

#ifndef SLUICE_SANITIZED  // A sanitizer's malloc does not tell.
TEST(Catalogue, AHandlerThatForgetsMemory) {
  const auto findings = Validated(fixture("leaks_memory")).findings();
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0], AllOf(StartsWith("create: error: each create and destroy leaves "), HasSubstr(" bytes")));
  EXPECT_THAT(findings[1], AllOf(StartsWith("leaks: error: each call of `handle` leaves "), HasSubstr(" bytes")));
}
#endif

TEST(Catalogue, AHandlerThatReportsNothingOrNonsense) {
  EXPECT_THAT(Validated(fixture("no_report")).findings(),
              ElementsAre(StartsWith("outcomes: error: `handle` reports an outcome that is none (at a plain message"),
                          StartsWith("outcomes: error: `handle` returns without an outcome (at an empty body)")));
}

TEST(Catalogue, ExceptionsThatLeaveAPlugin) {
  EXPECT_THAT(
      Validated(fixture("raw_throws")).findings(),
      ElementsAre(AllOf(StartsWith("options: error: "), HasSubstr("an exception left it: thrown out of create")),
                  StartsWith("exceptions: error: an exception leaves `handle`")));
}

TEST(Catalogue, WhatLeavesAsynchronousCodeAndWhatMayRelyOnTheAbi) {
  EXPECT_THAT(
      Validated(fixture("raw_async")).findings(),
      ElementsAre(AllOf(StartsWith("exceptions: error: an exception leaves `begin`"), HasSubstr("thrown out of begin")),
                  AllOf(StartsWith("exceptions: error: an exception leaves what the handler has called later"),
                        HasSubstr("thrown later"))));
}

TEST(Catalogue, HandlersOfEveryKind) {
  // Of its four handlers, one for batches and three that end their messages later, one completes each message twice.
  const Validated validated(fixture("kinds"));
  EXPECT_THAT(validated.findings(),
              ElementsAre(AllOf(StartsWith("outcomes: error: it goes on with a message that has ended"),
                                HasSubstr("completed a message that has ended"))));
  EXPECT_EQ(validated.verdict("batch"), "pass");
  EXPECT_EQ(validated.verdict("in-flight"), "pass");
}

TEST(Catalogue, ACrashNamesItsInputAndTheOtherChecksGoOn) {
  const Validated validated(fixture("fragile"));
  const auto findings = validated.findings();
  ASSERT_GE(findings.size(), 2U);
  EXPECT_THAT(findings[0], AllOf(StartsWith("options: error: it ended the process by signal 6"),
                                 HasSubstr("in the step: create with parts = 0")));
  EXPECT_THAT(findings[1], AllOf(StartsWith("bodies: error: it ended the process by signal 6"),
                                 HasSubstr("in the step: handle a body of 400 KB in one line")));
  EXPECT_EQ(validated.verdict("random"), "pass");
}

TEST(Catalogue, AHandlerThatRefusesItsOptionsIsWarnedOfAndNotRun) {
  const Validated validated(fixture("create_throws"));
  EXPECT_EQ(validated.exit_code, 0);
  EXPECT_THAT(validated.findings(), ElementsAre(AllOf(StartsWith("create: warning: it refuses the options: "),
                                                      HasSubstr("the licence has expired"))));
  EXPECT_EQ(validated.verdict("bodies"), "skip");
  EXPECT_EQ(Validated(fixture("create_throws"), {"--strict"}).exit_code, 1);
}

TEST(Catalogue, ALooselyLinkedPluginIsWarnedOf) {
  const Validated validated(fixture("loose"));
  EXPECT_EQ(validated.exit_code, 0);
  EXPECT_THAT(validated.findings(),
              ElementsAre(StartsWith("symbols: warning: it exports loose_helper beside sluice_plugin_v1"),
                          StartsWith("libraries: warning: it uses curl_version, which no library that it names has")));
}

TEST(Catalogue, WhatIsInOrderGivesNoFinding) {
  for (const char* name : {"noop", "previous_minor", "handle_throws_int", "non_utf8_error"}) {
    const Validated validated(fixture(name));
    EXPECT_EQ(validated.exit_code, 0) << name << validated.err;
    EXPECT_THAT(validated.findings(), IsEmpty()) << name;
    EXPECT_EQ(validated.verdict("leaks"), "pass") << name;
  }
}

TEST(Catalogue, AHandlerThatGoesOnAWhileIsNotSaidToReturnWhenItIsAsked) {
  const HostFolder folder;
  folder.write("options.toml", "duration = \"700ms\"\nignore_stop = true\n");
  const Finished text =
      folder.run({"plugin", "validate", fixture("sleeper"), "--options", folder.path() + "/options.toml"});
  EXPECT_EQ(text.exit_code, 0) << text.out;
  EXPECT_THAT(text.out, ContainsRegex("stop: once it is asked to stop, it returns within [0-9]+ms"));
}

TEST(Catalogue, ASlowHandlerThatStopsInTimeIsInOrder) {
  EXPECT_THAT(Validated(fixture("slow"), {}, "1s").findings(), IsEmpty());
}

}  // namespace
}  // namespace sluice::test
