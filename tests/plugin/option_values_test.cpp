#include <gtest/gtest.h>

#include "host/plugin/handler_instance.hpp"
#include "sluice/detail/option_text.hpp"
#include "sluice/handler.hpp"
#include "sluice/testing.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using List = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

struct Declares {
  static constexpr sluice::OptionSpec options[] = {
      sluice::option<std::string>("text", "hello there", "A text."),
      sluice::option<int>("count", "5", "A count."),
      sluice::option<double>("ratio", "0.5", "A ratio."),
      sluice::option<bool>("verbose", "true", "Whether."),
      sluice::option<std::chrono::seconds>("pause", "1500ms", "How long."),
      sluice::option<List>("words", R"(["a", 'b'])", "Words."),
      sluice::option<Map>("headers", R"({accept = "x", "a b" = "y"})", "Headers."),
      sluice::option<std::string>("maybe", "No default."),
  };
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

struct Needs {
  static constexpr sluice::OptionSpec options[] = {
      sluice::required<List>("command", "What to run."),
      sluice::required<std::string>("token", "The password.").secret(),
  };
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

struct Open {
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

struct DeclaresNone {
  static constexpr std::array<sluice::OptionSpec, 0> options{};
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

using Configured = std::map<std::string, config::OptionValue>;

template <typename H>
std::vector<std::string> errors(const Configured& configured) {
  const auto bound = bind_options(sluice::testing::handler<H>(), job_with(configured));
  std::vector<std::string> texts;
  for (const config::ConfigError& error : bound ? std::vector<config::ConfigError>() : bound.error()) {
    texts.push_back(error.text());
  }
  return texts;
}

template <typename H>
OptionValues bound(const Configured& configured) {
  return *bind_options(sluice::testing::handler<H>(), job_with(configured));
}

TEST(BindOptions, FillsInEveryDefault) {
  const OptionValues values = bound<Declares>({});
  ASSERT_EQ(values.size(), 7U) << "an option without a default stays absent";
  EXPECT_EQ(values[0].string, "hello there");
  EXPECT_EQ(values[1].integer, 5);
  EXPECT_EQ(values[2].number, 0.5);
  EXPECT_EQ(values[3].integer, 1);
  EXPECT_EQ(values[4].integer, 1'500'000'000);
  EXPECT_THAT(values[5].items, ElementsAre("a", "b"));
  EXPECT_THAT(values[6].items, ElementsAre("accept", "x", "a b", "y"));
}

TEST(BindOptions, TakesWhatIsConfigured) {
  const Configured configured{
      {"text", "hi"},  {"count", std::int64_t{-7}}, {"ratio", std::int64_t{2}},   {"verbose", false},
      {"pause", "2m"}, {"words", List{}},           {"headers", Map{{"k", "v"}}}, {"maybe", std::string("$1")}};
  const OptionValues values = bound<Declares>(configured);
  ASSERT_EQ(values.size(), 8U);
  EXPECT_EQ(values[0].string, "hi");
  EXPECT_EQ(values[1].integer, -7);
  EXPECT_EQ(values[2].number, 2.0) << "an integer is a number";
  EXPECT_EQ(values[2].type, SLUICE_OPTION_NUMBER);
  EXPECT_EQ(values[3].integer, 0);
  EXPECT_EQ(values[4].integer, 120'000'000'000);
  EXPECT_EQ(values[4].string, "2m");
  EXPECT_TRUE(values[5].items.empty());
  EXPECT_THAT(values[6].items, ElementsAre("k", "v"));
  EXPECT_EQ(values[7].string, "$1");
}

TEST(BindOptions, UnknownNameSaysWhereAndWhatIsNear) {
  EXPECT_THAT(
      errors<Declares>({{"cuont", std::int64_t{1}}}),
      ElementsAre("jobs.d/test.toml:9:3: the handler \"handler\" has no option \"cuont\"; did you mean \"count\"?"));
  EXPECT_THAT(errors<Declares>({{"zzzzzz", std::int64_t{1}}}), ElementsAre(HasSubstr("it has: text, count, ratio")));
  EXPECT_THAT(errors<DeclaresNone>({{"x", true}}), ElementsAre(HasSubstr("has no option \"x\"; it has none")));
}

TEST(BindOptions, WrongTypesAreAllReportedAtOnce) {
  const Configured configured{
      {"text", std::int64_t{1}},   {"count", 1.5},          {"ratio", "x"},        {"verbose", "yes"},
      {"pause", std::int64_t{30}}, {"words", "not a list"}, {"headers", List{"a"}}};
  const std::vector<std::string> texts = errors<Declares>(configured);
  EXPECT_THAT(texts, ElementsAre(HasSubstr("\"text\" of the handler \"handler\" must be a string"),
                                 HasSubstr("must be an integer"), HasSubstr("must be a number"),
                                 HasSubstr("must be true or false"), HasSubstr("must be a duration such as \"30s\""),
                                 HasSubstr("must be a list of strings"), HasSubstr("must be a table of strings")));
  for (const std::string& text : texts) {
    EXPECT_THAT(text, ::testing::StartsWith("jobs.d/test.toml:9:3: "));
  }
}

TEST(BindOptions, DurationsMustBeSpeltAsSuch) {
  for (const char* wrong : {"", "30", "s", "-5s", "1.5s", "5 s", "5sec", "9999999999999999d"}) {
    EXPECT_EQ(errors<Declares>({{"pause", wrong}}).size(), 1U) << wrong;
  }
}

TEST(BindOptions, MissingRequiredOptionsAreReportedAtTheHandler) {
  EXPECT_THAT(
      errors<Needs>({}),
      ElementsAre("jobs.d/test.toml:4:1: the handler \"handler\" needs the option \"command\", a list of strings: "
                  "set it in [job.options] (What to run.)",
                  HasSubstr("needs the option \"token\"")));
}

TEST(BindOptions, ErrorsNeverShowASecret) {
  for (const std::string& text : errors<Needs>({{"token", List{"hunter2"}}, {"command", "hunter2"}})) {
    EXPECT_THAT(text, ::testing::Not(HasSubstr("hunter2")));
  }
}

TEST(BindOptions, ABadDefaultIsThePluginsDefect) {
  const sluice_option option{sizeof(sluice_option), SLUICE_OPTION_INTEGER, 0, 0, "count", "many", nullptr};
  const sluice_option* const options[] = {&option};
  sluice_handler handler = sluice::testing::handler<DeclaresNone>();
  handler.options = options;
  handler.option_count = 1;
  const auto result = bind_options(handler, job_with({}));
  EXPECT_THAT(
      result.error().front().text(),
      HasSubstr(
          "declares the default \"many\" for its option \"count\", which must be an integer: a defect of the plugin"));
  EXPECT_EQ(bind_options(handler, job_with({{"count", std::int64_t{3}}}))->at(0).integer, 3);
}

TEST(BindOptions, OpenOptionsPassAsTheyAre) {
  const OptionValues values = bound<Open>(
      {{"a", "text"}, {"b", std::int64_t{3}}, {"c", 0.25}, {"d", true}, {"e", List{"x"}}, {"f", Map{{"k", "v"}}}});
  ASSERT_EQ(values.size(), 6U);
  EXPECT_EQ(values[0].type, SLUICE_OPTION_STRING);
  EXPECT_EQ(values[1].type, SLUICE_OPTION_INTEGER);
  EXPECT_EQ(values[1].string, "3");
  EXPECT_EQ(values[2].type, SLUICE_OPTION_NUMBER);
  EXPECT_EQ(values[2].string, "0.25");
  EXPECT_EQ(values[3].type, SLUICE_OPTION_BOOLEAN);
  EXPECT_EQ(values[4].type, SLUICE_OPTION_LIST);
  EXPECT_EQ(values[5].type, SLUICE_OPTION_MAP);
}

TEST(BindOptions, SpellsDurationsAsTheConfigurationDoes) {
  for (const char* text : {"250us",
                           "1500ms",
                           "30s",
                           "15m",
                           "2h",
                           "1d",
                           "7ns",
                           "0s",
                           "",
                           "s",
                           "5",
                           "-1s",
                           "+1s",
                           "1_0s",
                           " 1s",
                           "1.5s",
                           "106751d",
                           "106752d",
                           "9223372036854775807ns",
                           "9223372036854775808ns"}) {
    const auto ours = detail::parse_duration_text(text);
    const auto theirs = config::parse_duration(text);
    EXPECT_EQ(ours.has_value(), theirs.has_value()) << text;
    if (ours && theirs) {
      EXPECT_EQ(*ours, theirs->count()) << text;
    }
  }
}

}  // namespace
}  // namespace sluice::plugin
