#include "sluice/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "sluice/testing.hpp"

namespace {

using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using List = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

/// A handler that runs whatever a test wants in its constructor.
struct Reader {
  static inline std::function<void(const sluice::Options&)> read;
  explicit Reader(const sluice::Options& options) { read(options); }
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

/// The text of what `read` throws; empty when it throws nothing.
std::string thrown(const sluice::testing::OptionMap& configured, std::function<void(const sluice::Options&)> read) {
  Reader::read = std::move(read);
  const sluice::testing::HandlerTest test(sluice::testing::handler<Reader>(), configured);
  return test.created() ? "" : test.errors().front();
}

const sluice::testing::OptionMap kEvery{{"text", "hello"},       {"integer", 7},   {"number", 0.5},
                                        {"yes", true},           {"pause", "30s"}, {"list", List{"a", "b"}},
                                        {"map", Map{{"k", "v"}}}};

TEST(Options, ReadsEveryType) {
  EXPECT_EQ(thrown(kEvery,
                   [](const sluice::Options& options) {
                     EXPECT_EQ(options.get<std::string>("text"), "hello");
                     EXPECT_EQ(options.get<int>("integer"), 7);
                     EXPECT_EQ(options.get<std::uint8_t>("integer"), 7);
                     EXPECT_EQ(options.get<double>("number"), 0.5);
                     EXPECT_EQ(options.get<float>("integer"), 7.0F) << "an integer is a number";
                     EXPECT_TRUE(options.get<bool>("yes"));
                     EXPECT_EQ(options.get<std::chrono::milliseconds>("pause"), 30s);
                     EXPECT_EQ(options.duration("pause"), 30s);
                     EXPECT_THAT(options.list("list"), ElementsAre("a", "b"));
                     EXPECT_THAT(options.map("map"), ElementsAre(Pair("k", "v")));
                     EXPECT_THAT(options.names(),
                                 ElementsAre("integer", "list", "map", "number", "pause", "text", "yes"));
                   }),
            "");
}

TEST(Options, AnswersFallbacksOnlyForWhatIsAbsent) {
  EXPECT_EQ(thrown(kEvery,
                   [](const sluice::Options& options) {
                     EXPECT_FALSE(options.has("absent"));
                     EXPECT_TRUE(options.has("text"));
                     EXPECT_EQ(options.get("absent", "x"), "x");
                     EXPECT_EQ(options.get("text", "x"), "hello");
                     EXPECT_EQ(options.get("absent", 5), 5);
                     EXPECT_EQ(options.get("integer", 5), 7);
                     EXPECT_EQ(options.get("absent", true), true);
                     EXPECT_EQ(options.duration("absent", 5s), 5s);
                     EXPECT_EQ(options.find<int>("absent"), std::nullopt);
                     EXPECT_EQ(options.find<int>("integer"), 7);
                     EXPECT_THAT(options.list("absent"), ElementsAre());
                     EXPECT_THAT(options.map("absent"), ElementsAre());
                   }),
            "");
}

TEST(Options, NoPartOfADurationIsLost) {
  const auto in_seconds = [](const sluice::Options& options) {
    EXPECT_EQ(options.get<std::chrono::duration<double>>("pause").count(), options.duration("pause") / 1.0s);
    static_cast<void>(options.get<std::chrono::seconds>("pause"));
  };
  EXPECT_EQ(thrown({{"pause", "2m"}}, in_seconds), "");
  EXPECT_EQ(thrown({{"pause", "500ms"}}, in_seconds),
            "the option \"pause\" is \"500ms\", and its handler counts in steps of 1000000000ns");
  EXPECT_THAT(thrown({{"pause", "1d"}},
                     [](const sluice::Options& options) {
                       static_cast<void>(options.get<std::chrono::duration<std::int16_t>>("pause"));
                     }),
              HasSubstr("is \"1d\""));
}

TEST(Options, AMissingOptionIsNamed) {
  EXPECT_EQ(thrown({}, [](const sluice::Options& options) { static_cast<void>(options.get<int>("count")); }),
            "the option \"count\" is missing: set it in [job.options]");
}

/// Asks for an option by another name than the one that it declares.
template <typename Ask>
struct Asks {
  static constexpr sluice::OptionSpec options[] = {sluice::option<int>("retries", "How often.")};
  explicit Asks(const sluice::Options& values) { static_cast<void>(Ask()(values)); }
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const { return sluice::done(); }
};

template <typename Ask>
std::vector<std::string> errors_of(Ask) {
  return sluice::testing::HandlerTest(sluice::testing::handler<Asks<Ask>>()).errors();
}

TEST(Options, OneThatIsReadAndNotDeclaredIsTheAuthorsAffair) {
  const auto named =
      ElementsAre(HasSubstr("the option \"retires\" is read and not declared, a defect of the plugin: add "
                            "sluice::option<...>(\"retires\", ...) to the handler's `options`"));
  EXPECT_THAT(errors_of([](const sluice::Options& values) { return values.get<int>("retires"); }), named);
  // A job could not set it, so that these would never be true, or always the fallback.
  EXPECT_THAT(errors_of([](const sluice::Options& values) { return values.get<int>("retires", 5); }), named);
  EXPECT_THAT(errors_of([](const sluice::Options& values) { return values.find<int>("retires"); }), named);
  EXPECT_THAT(errors_of([](const sluice::Options& values) { return values.has("retires"); }), named);
}

TEST(Options, AWrongTypeIsNamed) {
  EXPECT_EQ(thrown(kEvery, [](const sluice::Options& options) { static_cast<void>(options.get<int>("text")); }),
            "the option \"text\" must be an integer");
  EXPECT_EQ(thrown(kEvery, [](const sluice::Options& options) { static_cast<void>(options.get("integer", "x")); }),
            "the option \"integer\" must be a string");
  EXPECT_THAT(thrown(kEvery, [](const sluice::Options& options) { static_cast<void>(options.duration("text")); }),
              HasSubstr("must be a duration"));
  EXPECT_THAT(thrown(kEvery, [](const sluice::Options& options) { static_cast<void>(options.duration("integer")); }),
              HasSubstr("must be a duration"));
  EXPECT_THAT(thrown(kEvery, [](const sluice::Options& options) { static_cast<void>(options.list("text")); }),
              HasSubstr("must be a list of strings"));
  EXPECT_THAT(thrown(kEvery, [](const sluice::Options& options) { static_cast<void>(options.get<double>("yes")); }),
              HasSubstr("must be a number"));
}

TEST(Options, AnIntegerThatDoesNotFitIsRefused) {
  EXPECT_EQ(
      thrown({{"n", 300}}, [](const sluice::Options& options) { static_cast<void>(options.get<std::int8_t>("n")); }),
      "the option \"n\" is out of range: from -128 to 127");
  EXPECT_THAT(
      thrown({{"n", -1}}, [](const sluice::Options& options) { static_cast<void>(options.get<unsigned>("n")); }),
      HasSubstr("out of range: from 0 to 4294967295"));
}

}  // namespace
