// Users of a NATS operator: the built plugin shows the JWT and signs with the seed of a credentials file.

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "tests/plugins/live_host.hpp"
#include "tests/support/nats_server.hpp"

namespace sluice::publishers {
namespace {

using shipped::LiveHost;
using shipped::OptionMap;
using shipped::Result;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

std::string base_encoded(const std::string& bytes, const char* digits, unsigned bits) {
  std::string out;
  unsigned held = 0;
  unsigned count = 0;
  for (const char c : bytes) {
    held = held << 8U | static_cast<unsigned char>(c);
    for (count += 8; count >= bits; count -= bits) {
      out += digits[held >> (count - bits) & ((1U << bits) - 1)];
    }
    held &= (1U << count) - 1;
  }
  return count == 0 ? out : out + digits[held << (bits - count)];
}
std::string base32(const std::string& bytes) { return base_encoded(bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5); }
std::string base64url(const std::string& bytes) {
  return base_encoded(bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 6);
}

std::string with_checksum(std::string bytes) {
  unsigned crc = 0;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc << 1U ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U)) & 0xFFFFU;
    }
  }
  bytes += static_cast<char>(crc & 0xFFU);
  bytes += static_cast<char>(crc >> 8U);
  return bytes;
}

/// A key pair of NATS: `kind` is 'O', 'A' or 'U'. The same seed gives the same key.
class NatsKey {
 public:
  NatsKey(char kind, char seed) : prefix_(static_cast<unsigned>(kind - 'A') << 3U), seed_(32, seed) {
    key_ = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(seed_.data()),
                                        seed_.size());
  }
  ~NatsKey() { EVP_PKEY_free(key_); }
  NatsKey(const NatsKey&) = delete;
  NatsKey& operator=(const NatsKey&) = delete;

  std::string name() const {
    std::array<unsigned char, 32> bytes{};
    std::size_t size = bytes.size();
    EVP_PKEY_get_raw_public_key(key_, bytes.data(), &size);
    return base32(with_checksum(static_cast<char>(prefix_) + std::string(bytes.begin(), bytes.end())));
  }
  std::string seed() const {
    constexpr unsigned kSeed = 18U << 3U;
    const std::string head = {static_cast<char>(kSeed | prefix_ >> 5U), static_cast<char>((prefix_ & 31U) << 3U)};
    return base32(with_checksum(head + seed_));
  }
  /// A token that this key issues for another.
  std::string token(const NatsKey& subject, const std::string& claims) const {
    const std::string text = base64url(R"({"typ":"JWT","alg":"ed25519-nkey"})") + "." +
                             base64url(R"({"jti":"1","iat":1,"name":"test","iss":")" + name() + R"(","sub":")" +
                                       subject.name() + R"(","nats":{)" + claims + R"(,"version":2}})");
    std::array<unsigned char, 64> signature{};
    std::size_t size = signature.size();
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EVP_DigestSignInit(context, nullptr, nullptr, nullptr, key_);
    EVP_DigestSign(context, signature.data(), &size, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    EVP_MD_CTX_free(context);
    return text + "." + base64url(std::string(signature.begin(), signature.end()));
  }

 private:
  unsigned prefix_;
  std::string seed_;
  EVP_PKEY* key_;
};

TEST(NatsCredentials, AreShownAndSignedWith) {
  const NatsKey op('O', 'o');
  const NatsKey account('A', 'a');
  const NatsKey system('A', 's');
  const NatsKey user('U', 'u');
  const std::string limits =
      R"("type":"account","limits":{"subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,"wildcards":true,)"
      R"("conn":-1,"leaf":-1,"mem_storage":-1,"disk_storage":-1,"streams":-1,"consumer":-1})";
  const auto server =
      test::NatsServer::start("operator: \"" + op.token(op, R"("type":"operator")") +
                              "\"\nsystem_account: " + system.name() + "\nresolver: MEMORY\nresolver_preload: { " +
                              account.name() + ": \"" + op.token(account, limits) + "\", " + system.name() + ": \"" +
                              op.token(system, R"("type":"account","limits":{"subs":-1,"data":-1,"payload":-1,)"
                                               R"("imports":-1,"exports":-1,"wildcards":true,"conn":-1,"leaf":-1})") +
                              "\" }\n");
  if (!server) {
    GTEST_SKIP() << test::NatsServer::absence();
  }
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-creds-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string token = account.token(user, R"("type":"user","pub":{},"sub":{},"subs":-1,"data":-1,"payload":-1)");
  const auto write = [&](const std::string& name, const std::string& seed) {
    std::ofstream(folder + "/" + name) << "-----BEGIN NATS USER JWT-----\n"
                                       << token << "\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n"
                                       << seed << "\n------END USER NKEY SEED------\n";
    return folder + "/" + name;
  };
  const auto reason = [&](const OptionMap& others) {
    OptionMap options = others;
    options.insert({{"servers", Names{server->url()}}, {"subject", "nowhere"}, {"outage", "retry"}});
    return LiveHost("nats", options).handle({.body = "x"}).reason;
  };
  EXPECT_THAT(reason({{"credentials_file", write("good.creds", user.seed())}}), HasSubstr("no stream takes"));
  EXPECT_THAT(reason({{"credentials_file", write("other.creds", NatsKey('U', 'x').seed())}, {"timeout", "300ms"}}),
              HasSubstr("Authorization"));
  EXPECT_THAT(reason({{"timeout", "300ms"}}), HasSubstr("Authorization"));
  std::ofstream(folder + "/user.jwt") << token;
  std::ofstream(folder + "/user.nk") << user.seed();
  EXPECT_THAT(reason({{"credentials_file", folder + "/user.jwt"}, {"seed_file", folder + "/user.nk"}}),
              HasSubstr("no stream takes"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sluice::publishers
