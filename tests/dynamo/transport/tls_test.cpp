// TLS against a real server: the openssl program with a certificate for "localhost" that it signed itself.

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "dynamo/credentials/sources.hpp"
#include "tests/dynamo/transport/transport_support.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::dynamo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kOpenssl = "/usr/bin/openssl";

class Tls : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kOpenssl, X_OK) != 0) {
      GTEST_SKIP() << kOpenssl << " is not there; install the package openssl to test TLS";
    }
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-tls-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    const auto made = run_program(
        {kOpenssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
         file("key"), "-out", file("certificate"), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"},
        100'000, clock_, Deadline::after(clock_, std::chrono::seconds(20)));
    ASSERT_TRUE(made) << made.error().message;
    port_ = test::free_loopback_port();
    server_ = std::make_unique<test::ChildProcess>(
        std::vector<std::string>{kOpenssl, "s_server", "-accept", "127.0.0.1:" + std::to_string(port_), "-key",
                                 file("key"), "-cert", file("certificate"), "-www"});
    ASSERT_TRUE(server_->wait_until_listening(port_));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  HttpResult get(const std::string& host, const std::string& ca_file) const {
    CurlTransportOptions options;
    options.ca_file = ca_file;
    RunningTransport running(options);
    HttpRequest request;
    request.method = "GET";
    request.url = "https://" + host + ":" + std::to_string(port_) + "/";
    return running.send(std::move(request)).get();
  }

  SystemClock clock_;
  std::filesystem::path folder_;
  int port_ = 0;
  std::unique_ptr<test::ChildProcess> server_;
};

TEST_F(Tls, TalksToAServerWhoseCertificateIsTrusted) {
  const auto result = get("localhost", file("certificate"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->status, 200);
}

TEST_F(Tls, RefusesACertificateThatNobodyVouchesFor) {
  const auto result = get("localhost", "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::transport);
  EXPECT_FALSE(result.error().outcome_unknown);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("cannot trust https://localhost:" + std::to_string(port_)),
                                            HasSubstr("CA certificates"), Not(HasSubstr("\n"))));
}

TEST_F(Tls, RefusesACertificateForAnotherHost) {
  const auto result = get("127.0.0.1", file("certificate"));
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.error().outcome_unknown);
  EXPECT_THAT(result.error().message, HasSubstr("cannot trust https://127.0.0.1:"));
}

}  // namespace
}  // namespace sluice::dynamo
