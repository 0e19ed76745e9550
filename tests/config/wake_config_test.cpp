#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.hpp"
#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

std::string wake_errors(const std::string& text, std::map<std::string, std::string> variables = {}) {
  return errors_text(parse_host_config(text, "host.toml", environment_of(std::move(variables))));
}

TEST(WakeSection, WithoutItNobodyListensAndWhatIsPutIsRungFor) {
  EXPECT_EQ(host_of("").wake.listen, "");
  EXPECT_TRUE(host_of("").wake.ring);
}

TEST(WakeSection, IsReadAsItStands) {
  const WakeConfig wake = host_of(R"(
[wake]
listen = "${ADDRESS}:7011"
announce = "worker-1.example.com:0"
secret = "${SECRET}"
ring = false
)",
                                  {{"ADDRESS", "[fd00::5]"}, {"SECRET", "0123456789abcdef"}})
                              .wake;
  EXPECT_EQ(wake.listen, "[fd00::5]:7011");
  EXPECT_EQ(wake.announce, "worker-1.example.com:0");
  EXPECT_EQ(wake.secret, "0123456789abcdef");
  EXPECT_FALSE(wake.ring);
}

TEST(WakeSection, AnEmptyAddressIsNone) { EXPECT_EQ(host_of("[wake]\nlisten = \"${WAKE:-}\"").wake.listen, ""); }

TEST(WakeSection, EveryAddressOfTheMachineNeedsOneToAnnounce) {
  EXPECT_THAT(wake_errors("[wake]\nlisten = \"0.0.0.0:7011\""),
              testing::HasSubstr("host.toml:2:10: 'listen' in [wake] stands for every address of this machine"));
  EXPECT_EQ(host_of("[wake]\nlisten = \"0.0.0.0:7011\"\nannounce = \"10.0.0.5:7011\"").wake.announce, "10.0.0.5:7011");
}

TEST(WakeSection, NoErrorShowsASecret) {
  for (const std::string& secret : {std::string("hunter2"), std::string(256, 'x')}) {
    const std::string text = wake_errors("[wake]\nsecret = \"${SECRET}\"", {{"SECRET", secret}});
    EXPECT_THAT(text, testing::HasSubstr("'secret' in [wake] must be 16 to 255 bytes"));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr(secret)));
  }
}

TEST(WakeSection, AnEditWaitsForARestart) {
  EXPECT_EQ(changed_keys(host_of(""),
                         host_of("[wake]\nlisten = \"127.0.0.1:0\"\nsecret = \"0123456789abcdef\"\nring = false")),
            (std::vector<std::string>{"wake.listen", "wake.ring", "wake.secret"}));
}

}  // namespace
}  // namespace sluice::config
