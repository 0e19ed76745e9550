// TLS between the built NATS plugin and the distribution's nats-server.

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include "tests/plugins/live_host.hpp"
#include "tests/publishers/jet_stream.hpp"
#include "tests/support/nats_server.hpp"

namespace sluice::publishers {
namespace {

using shipped::LiveHost;
using shipped::OptionMap;
using shipped::Result;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

/// For what ends by time alone, and is tried once in any time.
const OptionMap::value_type kSoon{"timeout", "300ms"};

/// A certificate that signs itself, for a subject alternative name such as "IP:127.0.0.1", and its key, as files.
class Certificate {
 public:
  explicit Certificate(const char* name) {
    std::string folder = (std::filesystem::temp_directory_path() / "sluice-tls-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) {
      throw std::runtime_error("no folder for a certificate");
    }
    folder_ = folder;
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    for (const auto& [kind, value] :
         {std::pair(NID_subject_alt_name, name), std::pair(NID_basic_constraints, "CA:TRUE")}) {
      X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
      X509_add_ext(certificate, extension, -1);
      X509_EXTENSION_free(extension);
    }
    X509_sign(certificate, key, EVP_sha256());
    std::FILE* file = std::fopen(path().c_str(), "we");
    PEM_write_X509(file, certificate);
    std::fclose(file);
    file = std::fopen(key_path().c_str(), "we");
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  ~Certificate() { std::filesystem::remove_all(folder_); }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  std::string path() const { return (folder_ / "certificate.pem").string(); }
  std::string key_path() const { return (folder_ / "key.pem").string(); }
  /// A block of the server's configuration.
  std::string configuration(const std::string& more = "") const {
    return "tls { cert_file: \"" + path() + "\", key_file: \"" + key_path() + "\"" + more + " }\n";
  }

 private:
  std::filesystem::path folder_;
};

/// What a message comes to; a subject without a stream stands for "the server was reached".
std::string reason_from(const test::NatsServer& server, OptionMap options) {
  options.emplace("servers", Names{server.url()});
  options.emplace("subject", "nowhere");
  options.emplace("outage", "retry");
  const Result result = LiveHost("nats", options).handle({.body = "x"});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  return result.reason;
}

TEST(NatsTls, TrustsTheAuthorityThatTheJobNamesAndNoOther) {
  const Certificate certificate("IP:127.0.0.1");
  const Certificate other("IP:127.0.0.1");
  const auto server = test::NatsServer::start(certificate.configuration());
  if (!server) {
    GTEST_SKIP() << test::NatsServer::absence();
  }
  EXPECT_THAT(reason_from(*server, {{"ca_file", certificate.path()}}), HasSubstr("no stream takes"));
  EXPECT_THAT(reason_from(*server, {{"tls", true}, {"tls_verify", false}}), HasSubstr("no stream takes"));
  for (OptionMap options : {OptionMap{{"ca_file", other.path()}}, OptionMap{{"tls", true}}}) {
    options.insert(kSoon);
    EXPECT_THAT(reason_from(*server, options), HasSubstr("certificate"));
  }
}

TEST(NatsTls, ChecksTheServersName) {
  const Certificate certificate("DNS:nats.example.com");
  const auto server = test::NatsServer::start(certificate.configuration());
  if (!server) {
    GTEST_SKIP() << test::NatsServer::absence();
  }
  EXPECT_THAT(reason_from(*server, {{"ca_file", certificate.path()}, kSoon}), HasSubstr("mismatch"));
  EXPECT_THAT(reason_from(*server, {{"ca_file", certificate.path()}, {"server_name", "other.example.com"}, kSoon}),
              HasSubstr("mismatch"));
  EXPECT_THAT(reason_from(*server, {{"ca_file", certificate.path()}, {"server_name", "nats.example.com"}}),
              HasSubstr("no stream takes"));
}

// libnats 3.4 reads and writes a connection from different threads.
TEST(NatsTls, CarriesManyMessagesAtOnce) {
  const Certificate certificate("IP:127.0.0.1");
  const auto server = test::NatsServer::start(certificate.configuration());
  if (!server) {
    GTEST_SKIP() << test::NatsServer::absence();
  }
  JetStream stream(server->url(), certificate.path());
  stream.add_stream("ORDERS", {"orders.>"});
  constexpr int kThreads = 32;
  constexpr int kEach = 100;
  LiveHost host("nats", {{"servers", Names{server->url()}}, {"ca_file", certificate.path()}, {"subject", "orders"}});
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&host, thread] {
        for (int i = 0; i < kEach; ++i) {
          const Result result = host.handle({.body = std::string(500, 'x'),
                                             .id = std::to_string(thread * kEach + i),
                                             .group = std::to_string(thread)});
          EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
        }
      });
    }
  }
  EXPECT_EQ(stream.count("ORDERS"), static_cast<std::uint64_t>(kThreads * kEach));
}

TEST(NatsTls, ShowsItsCertificate) {
  const Certificate certificate("IP:127.0.0.1");
  const auto server =
      test::NatsServer::start(certificate.configuration(", ca_file: \"" + certificate.path() + "\", verify: true"));
  if (!server) {
    GTEST_SKIP() << test::NatsServer::absence();
  }
  EXPECT_THAT(reason_from(*server, {{"ca_file", certificate.path()}, kSoon}),
              HasSubstr("no server of NATS is connected"));
  EXPECT_THAT(reason_from(*server, {{"ca_file", certificate.path()},
                                    {"certificate_file", certificate.path()},
                                    {"key_file", certificate.key_path()}}),
              HasSubstr("no stream takes"));
}

}  // namespace
}  // namespace sluice::publishers
