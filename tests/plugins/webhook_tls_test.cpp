#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/plugins/http_server.hpp"
#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

/// A certificate that signs itself, for the subject alternative name given, such as "IP:127.0.0.1", and a server with
/// it.
class SelfSigned {
 public:
  explicit SelfSigned(const char* name) : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509_set_version(certificate_, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate_), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate_), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate_), 3600);
    X509_set_pubkey(certificate_, key_);
    X509_NAME* subject = X509_get_subject_name(certificate_);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(certificate_, subject);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, name);
    X509_add_ext(certificate_, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(certificate_, key_, EVP_sha256());
    std::string file = (std::filesystem::temp_directory_path() / "sluice-ca-XXXXXX").string();
    std::FILE* stream = ::fdopen(::mkstemp(file.data()), "w");
    PEM_write_X509(stream, certificate_);
    std::fclose(stream);
    file_ = file;
  }
  ~SelfSigned() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
    std::filesystem::remove(file_);
  }
  SelfSigned(const SelfSigned&) = delete;
  SelfSigned& operator=(const SelfSigned&) = delete;

  std::shared_ptr<SSL_CTX> context() const {
    std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
    SSL_CTX_use_certificate(context.get(), certificate_);
    SSL_CTX_use_PrivateKey(context.get(), key_);
    return context;
  }
  const std::string& file() const { return file_; }

 private:
  EVP_PKEY* key_;
  X509* certificate_;
  std::string file_;
};

Result posted(const SelfSigned& certificate, OptionMap options) {
  ::setenv("no_proxy", "*", 1);
  HttpServer server([](const HttpRequest&) { return answer("200 OK"); }, certificate.context());
  options.emplace("url", server.url());
  Result result = LiveHost("webhook", options).handle({.body = "x"});
  EXPECT_EQ(server.requests().size(), result.status == SLUICE_DONE ? 1U : 0U);
  return result;
}

TEST(WebhookTls, TrustsTheCertificatesNamed) {
  const SelfSigned certificate("IP:127.0.0.1");
  const Result result = posted(certificate, {{"ca_file", certificate.file()}});
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
}

TEST(WebhookTls, TrustsNoOther) {
  const SelfSigned certificate("IP:127.0.0.1");
  const SelfSigned other("IP:127.0.0.1");
  for (const OptionMap& options : {OptionMap{}, OptionMap{{"ca_file", other.file()}}}) {
    const Result result = posted(certificate, options);
    EXPECT_EQ(result.status, SLUICE_RETRY);
    EXPECT_NE(result.reason.find("certificate"), std::string::npos) << result.reason;
  }
}

TEST(WebhookTls, SurvivesAConnectionThatBreaksWhileItSends) {
  ::signal(SIGPIPE, SIG_DFL);
  const SelfSigned certificate("IP:127.0.0.1");
  HttpServer server(nullptr, certificate.context());
  LiveHost host("webhook", {{"url", server.url()}, {"ca_file", certificate.file()}});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(host.handle({.body = std::string(3'000'000, 'x')}).status, SLUICE_RETRY);
  }
}

TEST(WebhookTls, ChecksTheName) {
  const SelfSigned certificate("DNS:example.com");
  const Result result = posted(certificate, {{"ca_file", certificate.file()}});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_NE(result.reason.find("127.0.0.1"), std::string::npos) << result.reason;
}

}  // namespace
}  // namespace sluice::shipped
