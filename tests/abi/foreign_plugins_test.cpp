// Plugins that another compiler, another ABI of strings or another standard library made: all that crosses is C, so
// that none of it matters. With the host built by clang these are gcc's plugins, and the reverse.
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

class ForeignPlugin : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(fixture_file(file()))) {
      GTEST_SKIP() << "NOT BUILT: the compiler or the standard library of " << GetParam() << " is not installed";
    }
  }
  std::string file() const { return std::string("foreign/") + GetParam(); }
  std::string create(const std::map<std::string, config::OptionValue>& options = {}) {
    const sluice_handler& handler = fixture_handler(file());
    const auto bound = bind_options(handler, job_with(options));
    const EffectRules rules{SLUICE_STORE_SQLITE, false, &random_, &clock_};
    auto created = HandlerInstance::create({log_.log(), rules}, handler, "orders", *bound);
    if (!created) {
      return created.error().message();
    }
    instance_ = std::move(*created);
    return {};
  }
  Outcome handle(const std::string& body) {
    queue::Message message;
    message.id = "A-101";
    message.body = body;
    message.attempt = 3;
    message.attributes["colour"] = "red";
    attempt_.arm(SteadyTime::max());
    return instance_->handle({message, "orders", 5, attempt_});
  }

  SeededRandom random_{1};
  FakeClock clock_;
  Attempt attempt_{clock_};
  LogRecord log_;
  std::unique_ptr<HandlerInstance> instance_;
};

TEST_P(ForeignPlugin, Works) {
  ASSERT_EQ(create({{"text", std::string(100, 'x')}, {"list", std::vector<std::string>{"a", "second"}}}), "");
  const Outcome outcome = handle("order");
  EXPECT_EQ(outcome.status, OutcomeStatus::done) << outcome.reason;
  ASSERT_NE(outcome.effects, nullptr);
  ASSERT_EQ(outcome.effects->messages.size(), 1U);
  EXPECT_EQ(outcome.effects->messages[0].queue, "answers");
  EXPECT_EQ(outcome.effects->messages[0].message.body, "order second");
  const auto text = [](const std::string& wanted) { return Field(&LogRecord::Line::text, wanted); };
  EXPECT_THAT(log_.lines(), ElementsAre(text("made for orders, with 1500000000"),
                                        text(std::string(100, 'x') + " from a thread"), text("colour=red")));
  EXPECT_EQ(handle("reject").reason, "rejected: " + std::string(100, 'x'));
}

TEST_P(ForeignPlugin, ThrowsAsAnyOther) {
  EXPECT_THAT(create({{"broken", true}}), HasSubstr("cannot be made: a text that no string keeps in itself"));
  ASSERT_EQ(create(), "");
  EXPECT_EQ(handle("throw").reason, "cannot work on throw, attempt 3");
  EXPECT_EQ(handle("throw").status, OutcomeStatus::fault);
  EXPECT_EQ(handle("throw int").reason, "threw something that is not a std::exception");
  EXPECT_EQ(handle("order").status, OutcomeStatus::done);
}

INSTANTIATE_TEST_SUITE_P(Compilers, ForeignPlugin, testing::Values("gcc", "gcc_old_strings", "clang", "clang_libcxx"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::plugin
