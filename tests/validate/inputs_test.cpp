#include "host/validate/inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/text/utf8.hpp"
#include "host/plugin/handler_instance.hpp"

namespace sluice::validate {
namespace {

/// A handler that declares one option.
class OneOption {
 public:
  explicit OneOption(sluice_option_type type, const char* name = "option") {
    option_ = {sizeof(sluice_option), type, SLUICE_OPTION_REQUIRED, 0, name, nullptr, nullptr};
    handler_.struct_size = sizeof(sluice_handler);
    handler_.name = "handler";
    handler_.options = &list_;
    handler_.option_count = 1;
  }
  OneOption(const OneOption&) = delete;
  OneOption& operator=(const OneOption&) = delete;

  const sluice_option& option() const { return option_; }
  bool takes(const config::OptionValue& value) const {
    config::JobConfig job;
    job.options.emplace(option_.name, config::Option{value, {}});
    return plugin::bind_options(handler_, job).has_value();
  }

 private:
  sluice_option option_{};
  const sluice_option* list_ = &option_;
  sluice_handler handler_{};
};

TEST(OddValues, AreOfTheTypeSoThatTheyReachTheHandler) {
  for (sluice_option_type type = SLUICE_OPTION_STRING; type <= SLUICE_OPTION_MAP; ++type) {
    const OneOption option(type);
    EXPECT_TRUE(option.takes(made_up_value(option.option()))) << type;
    EXPECT_GE(odd_values(type).size(), 2U) << type;
    for (const OddValue& odd : odd_values(type)) {
      EXPECT_TRUE(option.takes(odd.value)) << type << ": " << odd.what;
    }
  }
}

TEST(OddValues, OfTextAreUtf8AsAJobFileIs) {
  for (const OddValue& odd : odd_values(SLUICE_OPTION_STRING)) {
    EXPECT_TRUE(is_utf8(std::get<std::string>(odd.value))) << odd.what;
  }
}

TEST(MadeUpValue, FollowsTheName) {
  const auto made = [](const char* name) {
    return std::get<std::string>(made_up_value(OneOption(SLUICE_OPTION_STRING, name).option()));
  };
  EXPECT_EQ(made("hook_URL"), "http://127.0.0.1:9/");
  EXPECT_EQ(made("path"), "./made-up");
  EXPECT_EQ(made("broker"), "127.0.0.1:9");
  EXPECT_EQ(made("colour"), "text");
}

TEST(OddMessages, HaveWhatTheirNamesSay) {
  std::set<std::string> names;
  std::size_t largest = 0;
  std::size_t most_attributes = 0;
  bool empty = false;
  bool not_utf8 = false;
  for (const OddMessage& odd : odd_messages()) {
    EXPECT_TRUE(names.insert(odd.what).second) << odd.what;
    largest = std::max(largest, odd.message.body.size());
    most_attributes = std::max(most_attributes, odd.message.attributes.size());
    empty = empty || odd.message.body.empty();
    not_utf8 = not_utf8 || !is_utf8(odd.message.body);
  }
  EXPECT_EQ(largest, 400U * 1024);
  EXPECT_EQ(most_attributes, 1000U);
  EXPECT_TRUE(empty && not_utf8);
}

TEST(RandomMessage, IsTheSameForOneSeed) {
  const auto bodies = [](std::uint64_t seed) {
    SeededRandom random(seed);
    std::vector<std::string> all;
    for (std::size_t i = 0; i < 20; ++i) {
      const queue::Message message = random_message(random, i).message;
      all.push_back(message.content_type + std::to_string(message.attributes.size()) + message.body);
    }
    return all;
  };
  EXPECT_EQ(bodies(7), bodies(7));
  EXPECT_NE(bodies(7), bodies(8));
}

}  // namespace
}  // namespace sluice::validate
