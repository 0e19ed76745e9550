#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "dynamo/credentials/chain.hpp"
#include "dynamo/settings.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_random.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::dynamo {

/// A user's world of AWS settings: variables, a home folder of its own, and the services behind a fake transport.
class AwsFixture : public testing::Test {
 public:
  AwsFixture() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-aws-XXXXXX").string();
    home = mkdtemp(pattern.data());
    std::filesystem::create_directories(home / ".aws" / "sso" / "cache");
  }
  ~AwsFixture() override { std::filesystem::remove_all(home); }

 protected:
  AwsEnvironment environment() const {
    return {[values = variables](const std::string& name) -> std::optional<std::string> {
              const auto found = values.find(name);
              return found == values.end() ? std::nullopt : std::optional(found->second);
            },
            home};
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(home / name) << text; }
  void config(const std::string& text) const { write(".aws/config", text); }
  void shared_credentials(const std::string& text) const { write(".aws/credentials", text); }

  Result<Credentials> look_up() {
    return look_up_credentials(environment(), region, transport, clock, Deadline::never());
  }
  /// The error's message; the test fails when there is none.
  std::string failure() {
    const auto found = look_up();
    EXPECT_FALSE(found);
    return found ? "" : found.error().message;
  }
  std::string url_of_request(std::size_t index) const { return transport.requests().at(index).url; }

  std::filesystem::path home;
  std::map<std::string, std::string> variables;
  std::string region;  // of who wants the credentials
  test::FakeTransport transport;
  test::FakeClock clock;  // 2026-01-02T03:04:05Z
  test::FakeRandom random;
};

inline std::string sts_answer(const std::string& action, const std::string& key) {
  return "<" + action + "Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><" + action +
         "Result><AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/worker/s</Arn></AssumedRoleUser>"
         "<Credentials><AccessKeyId>" +
         key +
         "</AccessKeyId><SecretAccessKey>s&amp;k</SecretAccessKey><SessionToken>tok==</SessionToken>"
         "<Expiration>2026-01-02T04:04:05Z</Expiration></Credentials></" +
         action + "Result></" + action + "Response>";
}

}  // namespace sluice::dynamo
