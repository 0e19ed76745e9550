#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "base/text/hex.hpp"
#include "host/stores/outbox/mysql/mysql_database.hpp"
#include "host/stores/outbox/network/tcp_connect.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

// Of the protocol: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html
constexpr std::size_t kHeader = 4;
constexpr std::uint32_t kSslFlag = 0x800;
constexpr std::uint32_t kFlags = 0x200 | kSslFlag | 0x8000 | 0x80000;
constexpr std::size_t kMostGreeting = 64UL * 1024;
constexpr char kUtf8 = 45;

template <typename T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

class Probe {
 public:
  Probe(std::string place, const Clock& clock, Deadline deadline)
      : place_(std::move(place)), clock_(clock), deadline_(deadline) {}

  Result<void> connect(const ServerAddress& address, const std::string& path) {
    if (path.empty()) {
      auto socket = connect_tcp(address.host, address.port, clock_, deadline_);
      if (!socket) {
        return failed(socket.error());
      }
      socket_ = std::move(*socket);
      return {};
    }
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    if (path.size() >= sizeof(local.sun_path)) {
      return Error(ErrorCode::invalid, place_ + ": the path of the socket is too long");
    }
    std::memcpy(local.sun_path, path.c_str(), path.size() + 1);
    socket_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&local), sizeof(local)) != 0) {
      return Error(ErrorCode::unavailable, place_ + ": cannot connect to " + path + ": " + std::strerror(errno));
    }
    return {};
  }

  /// Takes the server's greeting and says that TLS comes next.
  Result<void> ask_for_tls() {
    SLUICE_TRY(header, receive(kHeader));
    const auto byte = [&header](std::size_t i) {
      return static_cast<std::size_t>(static_cast<unsigned char>((*header)[i]));
    };
    const std::size_t size = byte(0) | byte(1) << 8U | byte(2) << 16U;
    if (size == 0 || size > kMostGreeting) {
      return refused("it does not greet as a server of MySQL");
    }
    SLUICE_TRY(greeting, receive(size));
    // Version (to its zero byte), thread id (4), the salt's first part (8), a zero, and the lower flags.
    const std::size_t flags = greeting->find('\0', 1) + 1 + 4 + 8 + 1;
    if ((*greeting)[0] != 10 || flags + 2 > size) {
      return refused("it refuses this machine, or does not greet as a server of MySQL");
    }
    const auto upper = static_cast<unsigned char>((*greeting)[flags + 1]);
    if ((static_cast<std::uint32_t>(upper) << 8U & kSslFlag) == 0) {
      return refused("it has no TLS");
    }
    const std::string asked = request();
    // As much as this a fresh socket takes at once.
    return ::send(socket_.get(), asked.data(), asked.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(asked.size())
               ? Result<void>()
               : ended();
  }

  Result<std::string> handshake(const config::OutboxTls& tls, const std::string& name) {
    const Owned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
      return Error(ErrorCode::internal, "OpenSSL gives no context");
    }
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SLUICE_PASS_ON(read_files(*context, tls));
    const Owned<SSL> ssl(SSL_new(context.get()), SSL_free);
    if (ssl == nullptr || SSL_set_fd(ssl.get(), socket_.get()) != 1 || !expect(*ssl, name)) {
      return Error(ErrorCode::internal, "OpenSSL gives no connection");
    }
    SLUICE_PASS_ON(shake(*ssl));
    return fingerprint(*ssl);
  }

 private:
  Error refused(const std::string& what) const {
    return {ErrorCode::denied, place_ + ": no TLS session with the server: " + what};
  }

  static std::string request() {
    std::string packet{32, 0, 0, 1};  // 32 bytes, the second packet
    for (unsigned int i = 0; i < 4; ++i) {
      packet += static_cast<char>(kFlags >> (8 * i) & 0xffU);
    }
    packet += std::string("\0\0\0\1", 4) + kUtf8;
    return packet + std::string(23, '\0');
  }

  Error failed(const Error& error) const { return {error.code(), place_ + ": " + error.message()}; }
  Error ended() const { return {ErrorCode::unavailable, place_ + ": the connection has ended"}; }

  Result<void> wait(short events) const {
    pollfd watched{socket_.get(), events, 0};
    const auto ready = poll_until(std::span(&watched, 1), clock_, deadline_);
    return ready ? ready : Result<void>(failed(ready.error()));
  }

  Result<std::string> receive(std::size_t size) const {
    std::string bytes(size, '\0');
    for (std::size_t done = 0; done < size;) {
      SLUICE_PASS_ON(wait(POLLIN));
      const ssize_t got = ::recv(socket_.get(), bytes.data() + done, size - done, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        return ended();
      }
      done += got < 0 ? 0 : static_cast<std::size_t>(got);
    }
    return bytes;
  }

  Result<void> read_files(SSL_CTX& context, const config::OutboxTls& tls) const {
    const bool trusted = tls.ca.empty() ? SSL_CTX_set_default_verify_paths(&context) == 1
                                        : SSL_CTX_load_verify_locations(&context, tls.ca.c_str(), nullptr) == 1;
    if (!trusted) {
      return Error(ErrorCode::invalid, place_ + ": cannot read the certificates of 'ca', " + tls.ca);
    }
    if (!tls.certificate.empty() && (SSL_CTX_use_certificate_chain_file(&context, tls.certificate.c_str()) != 1 ||
                                     SSL_CTX_use_PrivateKey_file(&context, tls.key.c_str(), SSL_FILETYPE_PEM) != 1)) {
      return Error(ErrorCode::invalid,
                   place_ + ": cannot use 'certificate' and 'key', " + tls.certificate + " and " + tls.key);
    }
    return {};
  }

  static bool expect(SSL& ssl, const std::string& name) {
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(&ssl), name.c_str()) == 1) {
      return true;
    }
    return SSL_set1_host(&ssl, name.c_str()) == 1 && SSL_set_tlsext_host_name(&ssl, name.c_str()) == 1;
  }

  Result<void> shake(SSL& ssl) const {
    for (;;) {
      ERR_clear_error();
      const int answer = SSL_connect(&ssl);
      if (answer == 1) {
        return {};
      }
      const int why = SSL_get_error(&ssl, answer);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
        const long verified = SSL_get_verify_result(&ssl);
        const char* reason = ERR_reason_error_string(ERR_peek_last_error());
        return refused(verified != X509_V_OK ? X509_verify_cert_error_string(verified)
                       : reason == nullptr   ? "the connection has ended"
                                             : reason);
      }
      SLUICE_PASS_ON(wait(why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT));
    }
  }

  Result<std::string> fingerprint(SSL& ssl) const {
    const Owned<X509> certificate(SSL_get1_peer_certificate(&ssl), X509_free);
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (certificate == nullptr || X509_digest(certificate.get(), EVP_sha1(), digest.data(), &size) != 1) {
      return refused("it shows no certificate");
    }
    std::string text = to_hex(std::span(digest).first(size));
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
  }

  const std::string place_;
  const Clock& clock_;
  const Deadline deadline_;
  Descriptor socket_;
};

}  // namespace

Result<std::string> fingerprint_of_server(const ServerAddress& address, const std::string& socket,
                                          const config::OutboxTls& tls, const std::string& name, const Clock& clock,
                                          Deadline deadline) {
  Probe probe(address.place(), clock, deadline);
  SLUICE_PASS_ON(probe.connect(address, socket));
  SLUICE_PASS_ON(probe.ask_for_tls());
  return probe.handshake(tls, name);
}

}  // namespace sluice::queue::outbox::mysql
